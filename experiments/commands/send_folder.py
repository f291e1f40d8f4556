"""`mcastlab send --watch`: send what appears in a folder."""

from contextlib import closing
from pathlib import Path

from experiments.output.counted import counted
from experiments.output.transfer_reporter import TransferReporter, TransferStatus
from experiments.running.live import Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.session.membership import Membership
from experiments.session.sent_files import SentFiles
from experiments.session.session import Session
from experiments.session.watched_folder import FileOutcome, FolderSender, WatchedFolder
from protocols.acknowledgement import AckRequest
from topologies.units import format_size

__all__ = ["send_folder"]

STATE = ".mcastlab-sent.json"
"""Name of the state file in the folder, unless another is given."""


def send_folder(
    place: Membership,
    path: Path,
    state: Path | None,
    then: str,
    acks: AckRequest | None,
    wanted: WantedStatistics,
    timeout: float,
    *,
    brief: bool,
    as_json: bool,
) -> int:
    """Send files that appear in a folder until Ctrl-C or `timeout` seconds, with ACKs as in `acks`; return the exit code.

    UsageError for a folder or a state file that can't be used.
    """
    folder = WatchedFolder(path)
    with closing(SentFiles(path / STATE if state is None else state)) as files, live() as runner:
        sending = _FolderSending(runner, place, wanted, brief=brief, as_json=as_json)
        with sending.says:
            ending = runner.play(sending.run(FolderSender(folder, files, then, sending.tell, acks)), timeout)
        return sending.conclude(ending.word, interrupted=ending.interrupted)


class _FolderSending:
    def __init__(self, runner: Live, place: Membership, wanted: WantedStatistics, *, brief: bool, as_json: bool) -> None:
        self.runner = runner
        self.wanted = wanted
        self.session = Session(place, receives=False, told=lambda event: None)
        self.sent = self.octets = self.failed = 0
        self.failure = ""
        self.says = TransferReporter("sending", as_json, self._measure, brief=brief, bar=wanted.interval is None)

    async def run(self, sender: FolderSender) -> None:
        """Send until cancelled, or until the folder or the state file can't be used any more."""
        try:
            async with self.session as session:
                with self.wanted.told(
                    self.runner, session.host, session.measures, as_json=self.says.as_json
                ) as self.says.statistics:
                    await sender.run(session)
        except* OSError as errors:
            self.failure = "; ".join(dict.fromkeys(map(str, errors.exceptions)))

    def _measure(self) -> TransferStatus:
        return TransferStatus(self.octets, 0, 0.0, self.session.counts().get("nacks_received", 0))

    def tell(self, told: FileOutcome) -> None:
        """Report what became of a file."""
        if told.problem:
            self.failed += 1
            self.says.problem(f"failed: {told.name}: {told.problem}")
        else:
            self.sent, self.octets = self.sent + 1, self.octets + told.size
            self.says.detail(f"{told.name}  {format_size(told.size)}")
        if self.says.as_json:
            confirmed = None if told.delivery is None else list(told.delivery.confirmed)
            self.says.object(
                "file_failed" if told.problem else "file_sent",
                name=told.name,
                size=told.size,
                problem=told.problem or None,
                confirmed=confirmed,
                then=told.then,
            )

    def conclude(self, word: str, *, interrupted: bool) -> int:
        """Report how it ended and return the exit code."""
        if self.failure:
            self.says.problem(f"failed: {self.failure}")
        ok = not self.failed and not self.failure
        if self.says.as_json:
            self.says.object("summary", ok=ok, objects=self.sent, bytes=self.octets, failed=self.failed)
        failed = f", {self.failed} failed" if self.failed else ""
        result = "failed" if self.failure else word
        self.says.line(f"{result}: {counted(self.sent, 'file')} sent{failed}, {format_size(self.octets)}")
        return 130 if interrupted else int(not ok)

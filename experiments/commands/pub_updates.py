"""`mcastlab pub --protocol distributor`: publish lines of standard input, or generated updates."""

import asyncio
import json
import sys
from dataclasses import dataclass
from itertools import cycle

import typer

from experiments.commands.pub_input import Pacer, generated, input_lines
from experiments.output.counted import counted
from experiments.running.live import FINISHED, Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.session.connection import DistributorConnection
from protocols.distributor.snapshot import MEASURES
from protocols.errors import TransferError, UsageError
from topologies.units import format_duration

__all__ = ["UpdateOptions", "publish_updates"]

AT_ONCE = 1024
"""Updates published without a rate after which the event loop runs other tasks."""
HEARTBEATS = 4
"""Heartbeats that are sent while requests are answered."""


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """Options of a publisher of the Distributor; `rate` is in updates per second, `stay` in seconds."""

    subjects: list[str]
    count: int | None
    rate: float | None
    stay: float
    size: int | None


def publish_updates(
    opened: DistributorConnection, options: UpdateOptions, longest: float, wanted: WantedStatistics, *, as_json: bool
) -> int:
    """Publish updates, until the end of standard input or as many as asked for; return the exit code."""
    if options.size is not None and not options.subjects:
        raise UsageError("--size: generated updates need a --subject")
    publishing = _Publishing(opened, options.subjects, options.count, options.rate, options.stay)
    with live() as runner:
        ending = runner.play(publishing.run(runner, wanted, options.size), longest)
    if publishing.refusal is not None:
        raise publishing.refusal
    ok = ending.word == FINISHED and not publishing.failure
    word = "sent, reception not confirmed" if ok else publishing.failure or ending.word
    publishing.conclude(as_json, ok, word, ending.seconds)
    return 130 if ending.interrupted else int(not ok)


class _Publishing:
    def __init__(
        self, opened: DistributorConnection, subjects: list[str], most: int | None, rate: float | None, stay: float
    ) -> None:
        self._connection = opened
        self._subjects = cycle(subjects) if subjects else None
        self._most = most
        self._pace = Pacer(rate, AT_ONCE)
        self._stay = stay
        self._published = self._octets = 0
        self.failure = ""
        self.refusal: UsageError | None = None

    async def run(self, runner: Live, wanted: WantedStatistics, size: int | None) -> None:
        """Publish everything, and answer requests for a while."""
        async with self._connection as opened:
            with wanted.told(runner, opened.host, MEASURES, out=sys.stderr, managed=opened.process_id):
                await self._run(opened, size)

    async def _run(self, opened: DistributorConnection, size: int | None) -> None:
        await opened.announce()
        try:
            try:
                await self._publish_all(size)
            except UsageError as error:
                # What was published before is sent all the same.
                self.refusal = error
            await opened.flush()
            if self._published:
                await self._answer_requests(opened)
        except TransferError as error:
            self.failure = str(error)
        except OSError as error:
            self.failure = f"standard input: {error.strerror}"

    async def _answer_requests(self, opened: DistributorConnection) -> None:
        """Answer requests for a while, and go on as long as some come and can be answered.

        A subscriber that lost the last datagram learns of it by a heartbeat, of which the first may be lost, too.
        """
        loop, config = asyncio.get_running_loop(), opened.config
        heard, latest = opened.requests_received, loop.time() + max(self._stay, config.cache_age)
        for _ in range(HEARTBEATS):
            await asyncio.sleep(self._stay / HEARTBEATS)
            await opened.flush()
        while opened.requests_received > heard and loop.time() < latest:
            heard = opened.requests_received
            await asyncio.sleep(min(config.longest_wait, latest - loop.time()))

    async def _publish_all(self, size: int | None) -> None:
        """Publish generated updates of this size, or the lines of standard input, up to the number that is wanted."""
        async for content in input_lines() if size is None else generated(size):
            await self._publish(content)
            if self._published == self._most:
                return

    async def _publish(self, content: bytes) -> None:
        if self._subjects is not None:
            subject = next(self._subjects)
        else:
            name, _, content = content.partition(b" ")
            subject = name.decode(errors="replace")
        await self._pace.wait(self._published)
        try:
            await self._connection.publish(subject, content)
        except UsageError as error:
            raise UsageError(f"update {self._published + 1}: {error}") from error
        self._published += 1
        self._octets += len(content)

    def conclude(self, as_json: bool, ok: bool, word: str, elapsed: float) -> None:
        """Print the summary: on standard output as JSON, else on standard error."""
        counts = self._connection.statistics()
        names = ("data_sent", "repairs_sent", "requests_received", "requests_merged", "naks_sent")
        told = {name: counts.get(name, 0) for name in names}
        if as_json:
            last = {"event": "summary", "ok": ok, "updates": self._published, "bytes": self._octets, "seconds": elapsed}
            typer.echo(json.dumps({**last, **told}))
            return
        text = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in told.items())
        typer.echo(f"{word}: {counted(self._published, 'update')} in {format_duration(round(elapsed, 3))}, {text}", err=True)

"""`mcastlab pub --protocol distributor`: publish lines of standard input, or generated updates."""

import asyncio
import json
import sys
from dataclasses import dataclass
from itertools import count, cycle

import typer

from experiments.running.live import FINISHED, Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.running.standard_streams import PipeReader
from experiments.session.boundaries import MessageCutter
from experiments.session.connection import DistributorConnection
from protocols.distributor.snapshot import MEASURES
from protocols.errors import TransferError, UsageError
from topologies.units import format_duration

__all__ = ["UpdateOptions", "publish_updates"]

BURST = 0.005
"""Seconds of updates that are published together, so that a high rate costs few wake-ups."""


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
        self._rate = rate
        self._stay = stay
        self._published = self._octets = 0
        self.failure = ""

    async def run(self, runner: Live, wanted: WantedStatistics, size: int | None) -> None:
        """Publish everything, and answer requests for a while."""
        async with self._connection as opened:
            with wanted.told(runner, opened.host, MEASURES, out=sys.stderr, managed=opened.process_id):
                await self._run(opened, size)

    async def _run(self, opened: DistributorConnection, size: int | None) -> None:
        await opened.announce()
        try:
            if size is None:
                await self._lines()
            else:
                await self._generated(size)
            await opened.flush()
            await asyncio.sleep(self._stay if self._published else 0.0)
        except TransferError as error:
            self.failure = str(error)
        except OSError as error:
            self.failure = f"standard input: {error.strerror}"

    def _is_over(self) -> bool:
        return self._most is not None and self._published >= self._most

    async def _generated(self, size: int) -> None:
        """Publish updates that begin with their number."""
        for number in count():
            if self._is_over():
                return
            await self._publish(str(number).encode().ljust(size, b".")[:size])

    async def _lines(self) -> None:
        """Publish the lines of standard input, without the line feeds."""
        reader, cutter = PipeReader(sys.stdin.fileno()), MessageCutter("line")
        while not self._is_over() and (data := await reader.read()):
            for line in cutter.feed(data):
                if self._is_over():
                    return
                await self._publish(line.removesuffix(b"\n"))
        rest = cutter.rest()
        if rest and not self._is_over():
            await self._publish(rest)

    async def _publish(self, content: bytes) -> None:
        if self._subjects is not None:
            subject = next(self._subjects)
        else:
            name, _, content = content.partition(b" ")
            subject = name.decode(errors="replace")
        if self._rate is not None:
            await self._turn(self._rate)
        elif self._published % 1024 == 0:
            await asyncio.sleep(0)
        await self._connection.publish(subject, content)
        self._published += 1
        self._octets += len(content)

    async def _turn(self, rate: float) -> None:
        """Wait until the next update is due."""
        now = asyncio.get_running_loop().time()
        if not self._published:
            self._began = now
        early = self._began + self._published / rate - now
        if early > BURST:
            await asyncio.sleep(early)

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
        typer.echo(f"{word}: {self._published} updates in {format_duration(round(elapsed, 3))}, {text}", err=True)

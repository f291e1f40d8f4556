"""`mcastlab sub --protocol distributor`: print the updates of a multicast group that match subjects."""

import asyncio
import json
import sys
from typing import Any

import typer

from experiments.commands.sub_messages import incomplete
from experiments.output.counted import counted
from experiments.output.safe_text import printable
from experiments.running.live import Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.running.standard_streams import BufferedOutput, output_line
from experiments.session.connection import DistributorConnection
from experiments.session.deliveries import UpdateStream
from experiments.session.subscription_stream import DeliveryOverflowed
from protocols.distributor.events import ConnectionNagging, PublisherGone, PublisherHeard, QueueOverflowed, SegmentsLost
from protocols.distributor.snapshot import MEASURES
from protocols.events import Event
from protocols.snapshot import Snapshot
from topologies.units import format_duration

__all__ = ["print_updates"]

COUNTERS = (
    "data_received",
    "repairs_received",
    "requests_sent",
    "requests_suppressed",
    "segments_lost",
    "updates_dropped",
)
"""Counters in the summary."""


def print_updates(
    opened: DistributorConnection,
    subjects: list[str],
    count: int | None,
    longest: float,
    wanted: WantedStatistics,
    *,
    quiet: bool,
    as_json: bool,
) -> int:
    """Print updates as they come until so many have come or the time is over; return the exit code."""
    with live() as runner:
        receiving = _Receiving(runner, opened, subjects, count, quiet=quiet, as_json=as_json)
        ending = runner.play(receiving.run(wanted), longest)
        receiving.finish()
    enough = count is not None and receiving.received >= count
    if enough:
        receiving.missing = receiving.incomplete = 0
    ok = receiving.received >= (count or 1) and not (receiving.missing or receiving.incomplete)
    ok = ok and not (receiving.problems or receiving.failure)
    receiving.conclude(ok, ending.seconds)
    return 130 if ending.interrupted else int(not ok)


class _Receiving:
    def __init__(
        self, runner: Live, opened: DistributorConnection, subjects: list[str], count: int | None, *, quiet: bool, as_json: bool
    ) -> None:
        self._runner = runner
        self._connection = opened
        self._subjects = subjects
        self._count = count
        self._quiet = quiet
        self._as_json = as_json
        self._output = BufferedOutput(sys.stdout.fileno())
        self.received = self._octets = 0
        self.failure = ""
        self.problems = 0
        """Events that say that something was lost or dropped."""
        self.missing = 0
        """Gaps at the end: consecutive datagrams that had not come although later ones had."""
        self.incomplete = 0
        """Updates under way at the end whose publisher was silent."""

    async def run(self, wanted: WantedStatistics) -> None:
        """Print until the wanted number has come."""
        async with self._connection as opened:
            with wanted.told(self._runner, opened.host, MEASURES, out=sys.stderr, managed=opened.process_id):
                try:
                    await self._receive(opened)
                finally:
                    told = opened.host.snapshot()
                    self.missing, self.incomplete = _gaps(told), incomplete(told)

    async def _receive(self, opened: DistributorConnection) -> None:
        subscriptions = list(map(opened.subscribe, self._subjects))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._output.run())
                tasks.create_task(self._events())
                for incoming in subscriptions:
                    tasks.create_task(self._updates(incoming))
        except* BrokenPipeError:
            raise
        except* OSError as errors:
            self.failure = f"standard output: {errors.exceptions[0]}"

    async def _updates(self, incoming: UpdateStream) -> None:
        while (updates := await incoming.together()) is not None:
            for content in updates.contents:
                if self._count is not None and self.received >= self._count:
                    return
                self.received += 1
                self._octets += len(content)
                if not self._quiet:
                    await self._output.put(self._line(updates.subject, content, updates.source))
            if self._count is not None and self.received >= self._count:
                self._runner.stop()

    def _line(self, subject: str, content: bytes, source: Any) -> bytes:
        text = content.decode(errors="backslashreplace")
        if not self._as_json:
            return output_line(printable(f"{subject} {text}"))
        update = {"event": "update", "subject": subject, "size": len(content), "content": text}
        return output_line(json.dumps({**update, "host": source.host, "sender_id": source.sender_id}))

    def finish(self) -> None:
        """Write what waits to be written, until a signal comes."""
        self._runner.wait(self._output.finish())
        try:
            self._output.check()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.failure = f"standard output: {error.strerror}"

    async def _events(self) -> None:
        async for event in self._connection:
            self.problems += isinstance(event, (SegmentsLost, DeliveryOverflowed, ConnectionNagging))
            text = _told(event)
            if text and self._as_json:
                await self._output.put(output_line(json.dumps({"event": type(event).__name__, "text": text})))
            elif text:
                typer.echo(printable(text), err=True)

    def conclude(self, ok: bool, elapsed: float) -> None:
        """Print the summary: on standard output as JSON, else on standard error."""
        counts = self._connection.statistics()
        told = {name: counts.get(name, 0) for name in COUNTERS}
        if self._as_json:
            last = {
                "event": "summary",
                "ok": ok,
                "updates": self.received,
                "bytes": self._octets,
                "seconds": elapsed,
                "gaps": self.missing,
                "incomplete": self.incomplete,
            }
            typer.echo(json.dumps({**last, **told}))
            return
        text = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in told.items())
        missing = f", {counted(self.missing, 'gap')} of datagrams that were requested" if self.missing else ""
        missing += f", {self.incomplete} incomplete, whose publisher is silent" if self.incomplete else ""
        wanted = self._count if self._count and self.received < self._count else None
        many = counted(self.received, "update", wanted)
        line = f"{self.failure or 'received'}: {many} in {format_duration(round(elapsed, 3))}{missing}, {text}"
        typer.echo(line, err=True)


def _gaps(told: Snapshot) -> int:
    """Return the gaps in the statistics of a part of the protocol."""
    return int(told.values.get("ranges_missing", 0)) + sum(map(_gaps, told.parts))


def _told(event: Event) -> str:
    """Return an event in words, "" for one that says nothing new."""
    if isinstance(event, PublisherHeard):
        return f"publisher {event.application} ({event.source.sender_id})" if event.application else ""
    if isinstance(event, PublisherGone):
        return f"publisher {event.source.sender_id} is gone"
    if isinstance(event, SegmentsLost):
        what = counted(event.count, "datagram") if event.count else "an update"
        return f"lost: {what} of publisher {event.source.sender_id}: {event.reason}"
    if isinstance(event, QueueOverflowed):
        return f"{event.octets} bytes wait for earlier ones; further datagrams are requested again"
    if isinstance(event, DeliveryOverflowed):
        return f"{counted(event.dropped, 'update')} of {event.pattern} dropped: this program is too slow"
    nags = "too many retransmissions were requested for too long; nothing more is received"
    return nags if isinstance(event, ConnectionNagging) else ""

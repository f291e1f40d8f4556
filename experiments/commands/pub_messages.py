"""`mcastlab pub`: publish messages of JMS from files, lines of standard input, or generated ones."""

import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from experiments.commands.pub_input import LARGEST, Pacer, generated, input_lines
from experiments.output.counted import counted
from experiments.running.live import FINISHED, Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.session.message_bus import MessageBus
from protocols.errors import ConfigError, TransferError, UsageError
from protocols.norm.snapshot import MEASURES
from topologies.input_file import read_bytes
from topologies.units import format_duration

__all__ = ["MessageOptions", "Tally", "publish_messages", "summary_of"]

AT_ONCE = 64
"""Messages published without a rate after which the event loop runs other tasks."""


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """Options of a publisher: `rate` is in messages per second, `body` a type, `head` more of each message."""

    topic: str
    files: list[Path]
    count: int | None
    rate: float | None
    size: int | None
    body: str | None
    head: dict[str, Any]


def publish_messages(
    bus: MessageBus, options: MessageOptions, longest: float, wanted: WantedStatistics, *, as_json: bool
) -> int:
    """Publish messages until there are no more; return the exit code. UsageError for content that is none of its type."""
    publishing = _Publishing(bus, options)
    with live() as runner:
        ending = runner.play(publishing.run(runner, wanted), longest)
    if publishing.refusal is not None:
        raise publishing.refusal
    ok = ending.word == FINISHED and not publishing.failure
    word = "sent, reception not confirmed" if ok else publishing.failure or ending.word
    told = summary_of(bus, publishing.tally, ending.seconds)
    if as_json:
        typer.echo(json.dumps({"event": "summary", "ok": ok, **told}))
    else:
        expired, repairs = told["expired"], told["repairs"]
        text = f"{counted(publishing.tally.messages, 'message')} in {format_duration(round(ending.seconds, 3))}"
        typer.echo(f"{word}: {text}, {expired} expired, {counted(repairs, 'repair')}", err=True)
    return 130 if ending.interrupted else int(not ok)


class Tally:
    """Messages and their bytes, and the time between the first and the last."""

    def __init__(self) -> None:
        self.messages = self.octets = 0
        self._cpu = time.process_time()
        self._first = self._last = 0.0

    def add(self, octets: int) -> None:
        """Count a message of so many bytes."""
        self._last = time.perf_counter()
        if not self.messages:
            self._first = self._last
        self.messages += 1
        self.octets += octets

    @property
    def cpu(self) -> float:
        """Seconds of processor time since the beginning."""
        return time.process_time() - self._cpu

    def rate(self, amount: float) -> float:
        """Return an amount per second between the first message and the last; 0 for less than two."""
        span = self._last - self._first
        return amount / span if span > 0 else 0.0


def summary_of(bus: MessageBus, tally: Tally, elapsed: float) -> dict[str, Any]:
    """Return what a publisher or a subscriber says at its end; rates are those from its first to its last message."""
    counts = bus.statistics()
    return {
        "messages": tally.messages,
        "bytes": tally.octets,
        "seconds": elapsed,
        "messages_per_s": tally.rate(tally.messages - 1),
        "goodput_mbit_s": tally.rate(tally.octets * 8e-6),
        "expired": counts.get("messages_expired", 0),
        "refused": counts.get("messages_refused", 0),
        "lost": counts.get("messages_lost", 0),
        "dropped": counts.get("messages_dropped", 0),
        "nacks_sent": counts.get("nacks_sent", 0),
        "nacks_received": counts.get("nacks_received", 0),
        "repairs": counts.get("repairs_sent", 0),
        "pool": {name: counts.get(f"pool_{name}", 0) for name in ("taken", "returned", "exhausted")},
        "cpu_s": tally.cpu,
    }


class _Publishing:
    def __init__(self, bus: MessageBus, options: MessageOptions) -> None:
        self._bus = bus
        self._options = options
        self._pace = Pacer(options.rate, AT_ONCE)
        self.tally = Tally()
        self.failure = ""
        self.refusal: UsageError | None = None

    async def run(self, runner: Live, wanted: WantedStatistics) -> None:
        """Publish everything, and end when it is sent."""
        try:
            async with self._bus as bus:
                await bus.announce()
                with wanted.told(runner, bus.host, MEASURES, out=sys.stderr):
                    try:
                        await self._publish_all()
                    except UsageError as error:
                        # What was published before is sent all the same.
                        self.refusal = error
                    await bus.flush()
        except UsageError as error:
            self.refusal = error
        except TransferError as error:
            self.failure = str(error)
        except OSError as error:
            self.failure = f"standard input: {error.strerror}"

    async def _publish_all(self) -> None:
        async for content in self._contents():
            await self._publish(content)
            if self.tally.messages == self._options.count:
                return

    async def _contents(self) -> AsyncIterator[Any]:
        """Yield the contents of messages."""
        options = self._options
        if options.size is not None:
            async for data in generated(options.size):
                yield self._content(data, "bytes", f"--size: message {self.tally.messages + 1}")
        elif options.files:
            for path in options.files:
                try:
                    data = read_bytes(path, LARGEST)
                except OSError as error:
                    raise UsageError(f"{path}: can't be read ({error.strerror})") from error
                yield self._content(data, "bytes", f"{path}: the content")
        else:
            async for line in input_lines():
                yield self._content(line, "text", f"standard input: line {self.tally.messages + 1}")

    def _content(self, data: bytes, usual: str, origin: str) -> tuple[Any, str, int, str]:
        """Return the content of a message, its type, bytes and origin. UsageError for what is none of the type."""
        kind = self._options.body or usual
        try:
            content = data if kind == "bytes" else data.decode() if kind == "text" else json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{origin} is no {kind}: {error}") from error
        return content, kind, len(data), origin

    async def _publish(self, content: tuple[Any, str, int, str]) -> None:
        await self._pace.wait(self.tally.messages)
        try:
            await self._bus.publish(self._options.topic, content[0], body_type=content[1], **self._options.head)
        except ConfigError:
            # Its key is a parameter of the publisher.
            raise
        except UsageError as error:
            raise UsageError(f"{content[3]}: {error}") from error
        self.tally.add(content[2])

"""`mcastlab sub`: print messages of JMS as they come."""

import asyncio
import base64
import json
import sys
from dataclasses import dataclass
from typing import Any

import typer

from experiments.commands.pub_messages import Tally, summary_of
from experiments.output.counted import counted
from experiments.output.safe_text import printable
from experiments.running.live import Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.running.standard_streams import BufferedOutput, output_line
from experiments.session.message_bus import MessageBus
from experiments.session.message_stream import MessageStream
from experiments.session.subscription_stream import DeliveryOverflowed
from protocols.errors import UsageError
from protocols.events import Event
from protocols.jms import JmsMessage, topic_of
from protocols.jms.subscriptions import selector_of
from protocols.messaging import MessagesLost
from protocols.norm.snapshot import MEASURES
from protocols.snapshot import Snapshot
from topologies.units import format_duration

__all__ = ["Wanted", "incomplete", "print_messages"]

SILENT = 1.0
"""Seconds without a packet from which on a publisher in the middle of a message is taken to have ended."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of a subscriber; `form` is "text", "json" or "raw"."""

    topics: list[str]
    selector: str
    count: int | None
    form: str
    is_quiet: bool


def print_messages(bus: MessageBus, wanted: Wanted, longest: float, statistics: WantedStatistics, *, as_json: bool) -> int:
    """Print messages until so many have come or the time is over; return the exit code."""
    for topic in wanted.topics:
        topic_of(f"topic:{topic}", "TOPIC")
    selector_of(wanted.selector)
    with live() as runner:
        receiving = _Receiving(runner, bus, wanted)
        ending = runner.play(receiving.run(statistics), longest)
        receiving.finish()
    if receiving.refusal is not None:
        raise receiving.refusal
    enough = wanted.count is not None and receiving.tally.messages >= wanted.count
    not_there = {"missing": receiving.missing, "incomplete": receiving.incomplete}
    told = {**summary_of(bus, receiving.tally, ending.seconds), **(dict.fromkeys(not_there, 0) if enough else not_there)}
    ok = receiving.tally.messages >= (wanted.count or 1) and not (told["missing"] or told["incomplete"])
    ok = ok and not (receiving.problems or receiving.failure or told["refused"])
    if as_json:
        typer.echo(json.dumps({"event": "summary", "ok": ok, **told}))
    else:
        many = counted(receiving.tally.messages, "message", None if enough else wanted.count)
        text = f"{many} in {format_duration(round(ending.seconds, 3))}"
        refused = f", {told['refused']} refused, which are larger than the pool" if told["refused"] else ""
        missing = f", {told['missing']} missing, which were requested" if told["missing"] else ""
        missing += f", {told['incomplete']} incomplete, whose publisher is silent" if told["incomplete"] else ""
        lost = f"{told['lost']} lost{missing}{refused}, {counted(told['nacks_sent'], 'NACK')} sent"
        typer.echo(f"{receiving.failure or 'received'}: {text}, {lost}", err=True)
    return 130 if ending.interrupted else int(not ok)


class _Receiving:
    def __init__(self, runner: Live, bus: MessageBus, wanted: Wanted) -> None:
        self._runner = runner
        self._bus = bus
        self._wanted = wanted
        self._output = BufferedOutput(sys.stdout.fileno())
        self.tally = Tally()
        self.failure = ""
        self.refusal: UsageError | None = None
        self.problems = 0
        """Events that say that something was lost or dropped."""
        self.missing = 0
        """Messages that had not come at the end, or not wholly, although later packets had."""
        self.incomplete = 0
        """Messages under way at the end whose publisher was silent."""

    async def run(self, statistics: WantedStatistics) -> None:
        """Print until the wanted number has come."""
        try:
            async with self._bus as bus:
                streams = [bus.subscribe(topic, selector=self._wanted.selector) for topic in self._wanted.topics]
                with statistics.told(self._runner, bus.host, MEASURES, out=sys.stderr):
                    try:
                        await self._print(streams)
                    finally:
                        self.missing = sum(map(_missing, bus.snapshots()))
                        self.incomplete = sum(map(incomplete, bus.snapshots()))
        except* UsageError as refused:
            self.refusal = next(error for error in refused.exceptions if isinstance(error, UsageError))
        except* BrokenPipeError:
            raise
        except* OSError as errors:
            reason = next(error.strerror for error in errors.exceptions if isinstance(error, OSError))
            self.failure = f"standard output: {reason}"

    async def _print(self, streams: list[MessageStream]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._output.run())
            tasks.create_task(self._events())
            for stream in streams:
                tasks.create_task(self._messages(stream))

    async def _messages(self, stream: MessageStream) -> None:
        async for message in stream:
            if self._wanted.count is not None and self.tally.messages >= self._wanted.count:
                return
            self.tally.add(message.size)
            if not self._wanted.is_quiet:
                await self._output.put(self._line(message))
            if self.tally.messages == self._wanted.count:
                self._runner.stop()

    def _line(self, message: JmsMessage) -> bytes:
        if self._wanted.form == "raw":
            return message.body or b""
        if self._wanted.form == "json":
            return output_line(json.dumps({"event": "message", **_plain(message)}))
        return output_line(printable(f"{message.topic} {_text(message)}"))

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
        async for event in self._bus:
            self.problems += isinstance(event, (MessagesLost, DeliveryOverflowed))
            text = _told(event)
            if text and self._wanted.form == "json":
                await self._output.put(output_line(json.dumps({"event": type(event).__name__, "text": text})))
            elif text:
                typer.echo(printable(text), err=True)


def _missing(told: Snapshot) -> int:
    """Return the messages with gaps in the statistics of a part of the protocol."""
    has_gaps = told.part == "object" and told.states["state"] in ("unknown", "incomplete")
    return has_gaps + sum(map(_missing, told.parts))


def incomplete(told: Snapshot) -> int:
    """Return the messages without gaps whose rest did not come, in the statistics of a part of the protocol."""
    begun = [each for each in told.only("object") if each.states["state"] == "receiving"]
    return (len(begun) if told.values.get("silence", 0.0) >= SILENT else 0) + sum(map(incomplete, told.parts))


def _text(message: JmsMessage) -> str:
    """Return the content of a message as text."""
    content = message.content
    if isinstance(content, bytes):
        return content.decode(errors="backslashreplace")
    return content if isinstance(content, str) else json.dumps(content, default=_encoded)


def _encoded(value: object) -> str:
    """Return bytes within a map as text that JSON can hold."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _plain(message: JmsMessage) -> dict[str, Any]:
    """Return a message as JSON has it; the content of bytes is text where it is UTF-8, else base64."""
    content: Any = message.content
    if isinstance(content, bytes):
        try:
            content = content.decode()
        except UnicodeDecodeError:
            content = {"base64": base64.b64encode(content).decode()}
    head = {
        "id": message.message_id,
        "topic": message.topic,
        "timestamp": message.timestamp,
        "priority": message.priority,
        "expiration": message.expiration,
        "correlation_id": message.correlation_id,
        "reply_to": message.reply_to,
        "type": message.type,
        "redelivered": message.is_redelivered,
    }
    told = {name: value for name, value in head.items() if value not in ("", False)}
    content = json.loads(json.dumps(content, default=_encoded))
    return {**told, "properties": dict(message.properties), "body": message.body_type, "size": message.size, "content": content}


def _told(event: Event) -> str:
    """Return an event in words, "" for one that says nothing new."""
    if isinstance(event, MessagesLost):
        return f"lost: {counted(event.count, 'message')} of publisher {event.publisher:08x}"
    if isinstance(event, DeliveryOverflowed):
        return f"{counted(event.dropped, 'message')} of {event.pattern} dropped: this program is too slow"
    return ""

"""A message of JMS 1.1: a `Publication` with the rest of a JMS head, and a body of a type."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from protocols.errors import UsageError
from protocols.jms.bodies import body_type_of, read_body, write_body
from protocols.jms.properties import NO_PROPERTIES, Properties, Typed
from protocols.jms.values import Scalar, check_value
from protocols.messaging import LEAST_PRIORITY, MOST_PRIORITY, USUAL_PRIORITY, Publication, Value

__all__ = [
    "LONGEST_TOPIC",
    "TOPIC",
    "JmsMessage",
    "check_priority",
    "fields_of",
    "jms_message",
    "message_of",
    "topic_of",
]

TOPIC: Final = "topic:"
"""Prefix of the destination of a topic."""
LONGEST_TOPIC: Final = 255
"""Bytes of UTF-8 of the name of a topic."""
_HEADERS: Final = ("JMSDeliveryMode", "JMSPriority", "JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSType")
"""Header fields that a selector may name (JMS 1.1 3.8.1.1)."""


@dataclass(frozen=True, slots=True)
class JmsMessage(Publication):
    """A message as its receivers get it: times are whole milliseconds, properties have types.

    `publisher`, `instance` and `number` together are the JMSMessageID. Empty texts stand for fields that are not set.
    """

    instance: int = 0
    """Tells one start of the publisher from the next."""
    correlation_id: str = ""
    reply_to: str = ""
    """A destination."""
    type: str = ""
    is_persistent: bool = False
    is_redelivered: bool = False
    body_type: str = "bytes"
    """One of `BODY_TYPES`."""

    @property
    def message_id(self) -> str:
        """The JMSMessageID."""
        return f"ID:{self.publisher:08x}.{self.instance}.{self.number}"

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.destination.removeprefix(TOPIC)

    @property
    def content(self) -> Any:
        """The content of the body: bytes, str, `Properties`, a list or what JSON holds; None for a body of a size only."""
        return None if self.body is None else read_body(self.body_type, self.body)

    @property
    def timestamp(self) -> int:
        """The JMSTimestamp: milliseconds since 1970."""
        return round(self.sent_at * 1000)

    @property
    def expiration(self) -> int:
        """The JMSExpiration: milliseconds since 1970, 0 for never."""
        return 0 if self.expires_at == inf else round(self.expires_at * 1000)

    def header(self, name: str) -> Value | None:
        """Return a header field that selectors may name; None (null) for others, and for one that is not set."""
        if name == "JMSPriority":
            return self.priority
        if name == "JMSTimestamp":
            return self.timestamp
        if name == "JMSMessageID":
            return self.message_id
        if name == "JMSDeliveryMode":
            return "PERSISTENT" if self.is_persistent else "NON_PERSISTENT"
        text = {"JMSCorrelationID": self.correlation_id, "JMSType": self.type}.get(name, "")
        return text or None


class _Fields(Mapping[str, Value]):
    """Header fields and properties of a message."""

    __slots__ = ("_message",)

    def __init__(self, message: JmsMessage) -> None:
        self._message = message

    def __getitem__(self, name: str) -> Value:
        value = self._message.header(name) if name in _HEADERS else self._message.properties.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from self._message.properties
        yield from (name for name in _HEADERS if self._message.header(name) is not None)

    def __len__(self) -> int:
        return len(list(iter(self)))


def fields_of(message: JmsMessage) -> Mapping[str, Value]:
    """Return what a selector sees of a message."""
    return _Fields(message)


def topic_of(destination: str, key: str = "topic") -> str:
    """Return the name of the topic of a destination, `topic:NAME`. UsageError, naming `key`, for another one."""
    name = destination.removeprefix(TOPIC)
    if destination.startswith("queue:"):
        raise UsageError(f"{key}: {destination!r} is not allowed; there are topics only, and no queues (point-to-point)")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{key}: {destination!r} is not allowed; a text that UTF-8 can hold") from None
    if not destination.startswith(TOPIC) or not 0 < size <= LONGEST_TOPIC:
        shown = destination if len(destination) < 60 else f"{destination[:57]}..."
        raise UsageError(f"{key}: {shown!r} is not allowed; {TOPIC}NAME with a name of 1 to {LONGEST_TOPIC} bytes of UTF-8")
    return name


def check_priority(priority: int, key: str = "priority") -> int:
    """Return a priority. UsageError, naming `key`, for what is none."""
    if isinstance(priority, bool) or not isinstance(priority, int) or not LEAST_PRIORITY <= priority <= MOST_PRIORITY:
        raise UsageError(f"{key}: {priority!r} is not allowed; a whole number from {LEAST_PRIORITY} to {MOST_PRIORITY}")
    return priority


def message_of(publication: Publication, instance: int) -> JmsMessage:
    """Return a publication as its receivers get it. UsageError for what JMS does not allow."""
    if isinstance(publication, JmsMessage) and publication.instance == instance:
        return publication
    own = publication if isinstance(publication, JmsMessage) else None
    return jms_message(
        publication.publisher,
        publication.number,
        publication.destination,
        body=publication.body,
        size=publication.size,
        properties=publication.properties,
        priority=publication.priority,
        sent_at=publication.sent_at,
        expires_at=publication.expires_at,
        instance=instance,
        correlation_id=own.correlation_id if own else "",
        reply_to=own.reply_to if own else "",
        type=own.type if own else "",
        is_persistent=own.is_persistent if own else False,
        is_redelivered=own.is_redelivered if own else False,
        body_type=own.body_type if own else "bytes",
    )


def _milliseconds_from(time: float) -> float:
    """Return the first whole millisecond, in seconds, that is not before `time`."""
    milliseconds = round(time * 1000)
    return (milliseconds + (milliseconds / 1000 < time)) / 1000


def jms_message(
    publisher: int,
    number: int,
    destination: str,
    content: Any = None,
    *,
    body: bytes | None = None,
    size: int | None = None,
    properties: Mapping[str, Scalar | Typed] = NO_PROPERTIES,
    priority: int = USUAL_PRIORITY,
    sent_at: float = 0.0,
    expires_at: float = inf,
    instance: int = 0,
    correlation_id: str = "",
    reply_to: str = "",
    type: str = "",
    is_persistent: bool = False,
    is_redelivered: bool = False,
    body_type: str | None = None,
) -> JmsMessage:
    """Return a message with some content, whose body type follows from it unless `body_type` is given.

    Or with the bytes of its `body`, or with a body of a `size` only. Times are in seconds since 1970. UsageError for what JMS
    does not allow.
    """
    topic_of(destination)
    if reply_to:
        topic_of(reply_to, "reply_to")
    check_priority(priority)
    for key, text in (("correlation_id", correlation_id), ("type", type)):
        if text != "":
            check_value(key, "string", text)
    if content is not None:
        body_type = body_type or body_type_of(content)
        body = write_body(body_type, content)
    known = properties if isinstance(properties, Properties) else Properties(properties) if properties else NO_PROPERTIES
    return JmsMessage(
        publisher,
        number,
        destination,
        len(body) if body is not None else size or 0,
        body,
        known.checked() if known else NO_PROPERTIES,
        priority,
        round(sent_at * 1000) / 1000,
        expires_at if expires_at == inf else _milliseconds_from(expires_at),
        instance,
        correlation_id,
        reply_to,
        type,
        is_persistent,
        is_redelivered,
        body_type or "bytes",
    )

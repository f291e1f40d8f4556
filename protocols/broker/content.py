"""The headers of a message: from and to messages of JMS, and the fields that selectors see.

A message of ours has the headers `mcastlab-message` (publisher, instance and number), those that STOMP and ActiveMQ have for
fields of JMS (`priority`, `timestamp` and `expires` in milliseconds since 1970, `correlation-id`, `reply-to`, `type`), each
property under its own name, the types of properties that are no texts in `mcastlab-types`, and the type of a body that is no
bytes in `mcastlab-body`. Of a message of another program all properties are texts, as STOMP has no types.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Final

from protocols.broker.framing import BODY_LIMIT, HEAD_LIMIT
from protocols.broker.headers import MOST_HEADERS, escaped, read_headers
from protocols.broker.messages import Content
from protocols.errors import UsageError, WireError
from protocols.jms import BODY_TYPES, TOPIC, JmsMessage, Properties, fields_of, message_of
from protocols.jms.bodies import check_body
from protocols.jms.conversions import ConversionError, converted
from protocols.messaging import LEAST_PRIORITY, MOST_PRIORITY, USUAL_PRIORITY, Publication, Value

__all__ = [
    "KEEP",
    "OF_A_FRAME",
    "TOPIC_ON_WIRE",
    "check_message",
    "check_size",
    "content_of",
    "expiry_of",
    "has_room",
    "is_typed",
    "is_readable",
    "publication_of",
    "selector_fields",
]

TOPIC_ON_WIRE: Final = "/topic/"
"""Prefix of the destination of a topic in a frame."""
MESSAGE, TYPES, BODY, KEEP = "mcastlab-message", "mcastlab-types", "mcastlab-body", "mcastlab-keep"
OF_A_FRAME: Final = frozenset(
    (
        "destination",
        "receipt",
        "content-length",
        "subscription",
        "message-id",
        "ack",
        "transaction",
        KEEP,
    )
)
"""Headers of SEND and MESSAGE that belong to the frame and are not passed on; all others are the publisher's."""
STANDARD: Final = frozenset(
    ("content-type", "correlation-id", "expires", "persistent", "priority", "redelivered", "reply-to", "timestamp", "type")
)
"""Headers with a meaning of their own, which are no properties."""
_NO_PROPERTIES: Final = OF_A_FRAME | STANDARD | {MESSAGE, TYPES, BODY}
_MOST_DIGITS: Final = 19
LONGEST_HEAD: Final = HEAD_LIMIT - 1024
"""Bytes of the headers of a message that are passed on. A frame has others beside them, such as the destination."""
MOST_PASSED_ON: Final = MOST_HEADERS - 16


def check_size(size: int) -> None:
    """Raise UsageError for a body that no frame holds."""
    if size > BODY_LIMIT:
        raise UsageError(f"size: value {size} is not allowed; a message of the broker has at most {BODY_LIMIT} bytes")


def has_room(head: bytes) -> bool:
    """Return whether every frame has room for these headers of a message: a copy has more than what its publisher sent."""
    return len(head) <= LONGEST_HEAD and head.count(b"\n") <= MOST_PASSED_ON


def check_message(config: object, message: Publication) -> None:
    """Raise UsageError for a message that publishers refuse."""
    del config
    check_size(message.size)
    content_of(message)


def content_of(publication: Publication, instance: int = 0) -> Content:
    """Return a message as a publisher sends it. UsageError for what JMS and STOMP do not allow as properties."""
    message = message_of(publication, instance)
    lines = [f"{MESSAGE}:{message.publisher}.{message.instance}.{message.number}\n", *_head_lines(message)]
    properties = message.properties
    assert isinstance(properties, Properties)
    types = []
    for name, kind, value in properties.typed_items():
        if name in _NO_PROPERTIES:
            raise UsageError(f"property {name!r} is not allowed; STOMP has a header of this name")
        if kind != "string":
            types.append(f"{name}={kind}")
        lines.append(f"{name}:{escaped(str(converted(kind, value, 'string')))}\n")
    if types:
        lines.append(f"{TYPES}:{','.join(types)}\n")
    head = "".join(lines).encode()
    if not has_room(head):
        raise UsageError(f"properties: {len(head)} bytes are not allowed; at most {LONGEST_HEAD} in {MOST_PASSED_ON} headers")
    return Content(message.destination, head, message.size, message.body, message.expires_at, message)


def _head_lines(message: JmsMessage) -> Iterator[str]:
    """Yield the headers for the fields of JMS that are set."""
    yield f"timestamp:{message.timestamp}\n"
    if message.priority != USUAL_PRIORITY:
        yield f"priority:{message.priority}\n"
    if message.expiration:
        yield f"expires:{message.expiration}\n"
    if message.correlation_id:
        yield f"correlation-id:{escaped(message.correlation_id)}\n"
    if message.reply_to:
        yield f"reply-to:{escaped(TOPIC_ON_WIRE + message.reply_to.removeprefix(TOPIC))}\n"
    if message.type:
        yield f"type:{escaped(message.type)}\n"
    if message.body_type != "bytes":
        yield f"{BODY}:{message.body_type}\n"


def publication_of(content: Content, number: int = 0) -> JmsMessage:
    """Return the message of an application; one of another program is from publisher 0 and gets the `number`."""
    if content.publication is not None:
        return content.publication
    headers = read_headers(content.head)
    publisher, instance, own = _named(headers.get(MESSAGE, ""))
    reply_to = headers.get("reply-to", "")
    return JmsMessage(
        publisher,
        number if own is None else own,
        content.destination,
        content.size,
        content.body,
        _properties(headers),
        _priority(headers),
        (_whole(headers.get("timestamp")) or 0) / 1000,
        content.expires_at,
        instance,
        headers.get("correlation-id", ""),
        TOPIC + reply_to.removeprefix(TOPIC_ON_WIRE) if reply_to.startswith(TOPIC_ON_WIRE) else reply_to,
        headers.get("type", ""),
        is_redelivered=headers.get("redelivered") == "true",
        body_type=_body_type(headers),
    )


def is_readable(content: Content, message: JmsMessage) -> bool:
    """Return whether an application can read the body of the message that was made of `content`: it is one of its type."""
    if content.publication is not None or content.body is None:
        return True
    try:
        check_body(message.body_type, content.body)
    except WireError:
        return False
    return True


def is_typed(content: Content) -> bool:
    """Return whether the properties have the types their publisher gave them; else all are texts."""
    return content.head.startswith(MESSAGE.encode())


def selector_fields(content: Content) -> Mapping[str, Value]:
    """Return the properties and header fields of a message, by the names that selectors have for them."""
    return fields_of(publication_of(content))


def expiry_of(headers: Mapping[str, str]) -> float:
    """Return a time of expiry in seconds since 1970; 0 milliseconds stand for never, as in JMS."""
    return (_whole(headers.get("expires")) or inf) / 1000


def _properties(headers: Mapping[str, str]) -> Properties:
    types = dict(entry.partition("=")[::2] for entry in headers.get(TYPES, "").split(","))
    found = Properties()
    for name, text in headers.items():
        if name not in _NO_PROPERTIES:
            kind = types.get(name, "string")
            try:
                found.put(name, kind, converted("string", text, kind))
            except ConversionError:
                # A text that is no value of its type stays a text.
                found.put(name, "string", text)
    return found


def _body_type(headers: Mapping[str, str]) -> str:
    kind = headers.get(BODY, "")
    if kind in BODY_TYPES:
        return kind
    return "text" if headers.get("content-type", "").startswith("text/") else "bytes"


def _named(text: str) -> tuple[int, int, int | None]:
    """Return publisher, instance and number of a message; 0, 0 and None for one that does not name them."""
    parts = [_whole(part) for part in text.split(".", 3)]
    if len(parts) != 3 or None in parts:
        return 0, 0, None
    publisher, instance, number = parts
    return publisher or 0, instance or 0, number


def _whole(text: str | None) -> int | None:
    """Return a whole number of 64 bits; None for anything else."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return None
    return int(text)


def _priority(headers: Mapping[str, str]) -> int:
    found = _whole(headers.get("priority"))
    return USUAL_PRIORITY if found is None or not LEAST_PRIORITY <= found <= MOST_PRIORITY else found

"""The headers of a message: from and to messages of applications, and the fields that selectors see.

A message of ours has the headers `mcastlab-message` (publisher and number), `priority`, `timestamp` and `expires` (milliseconds
since 1970), each property under its own name, and the types of properties that are no text in `mcastlab-types`. Of a message of
another program all properties are texts, as STOMP has no types.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, inf, isfinite
from typing import Final

from protocols.broker.headers import escaped, read_headers
from protocols.broker.messages import Content
from protocols.errors import UsageError
from protocols.messaging import LEAST_PRIORITY, MOST_PRIORITY, USUAL_PRIORITY, Publication, Value

__all__ = ["OF_A_FRAME", "content_of", "expiry_of", "is_typed", "publication_of", "selector_fields"]

MESSAGE, TYPES = "mcastlab-message", "mcastlab-types"
OF_A_FRAME: Final = frozenset(
    ("destination", "receipt", "content-length", "subscription", "message-id", "ack", "transaction", "id", "selector")
)
"""Headers that belong to a frame and are not passed on."""
STANDARD: Final = frozenset(
    ("content-type", "correlation-id", "expires", "persistent", "priority", "redelivered", "reply-to", "timestamp", "type")
)
"""Headers with a meaning of their own, which are no properties."""
_FIELDS: Final = {"correlation-id": "JMSCorrelationID", "type": "JMSType", MESSAGE: "JMSMessageID"}
_NAMES: Final = {bool: "boolean", int: "int", float: "float"}


def content_of(message: Publication) -> Content:
    """Return a message as it is sent. UsageError for a property whose name is that of another header."""
    lines = [f"{MESSAGE}:{message.publisher}.{message.number}", f"timestamp:{int(message.sent_at * 1000)}"]
    if message.priority != USUAL_PRIORITY:
        lines.append(f"priority:{message.priority}")
    if isfinite(message.expires_at):
        # The message is the same whether or not bytes travel.
        milliseconds = ceil(message.expires_at * 1000)
        message = replace(message, expires_at=milliseconds / 1000)
        lines.append(f"expires:{milliseconds}")
    types = [f"{escaped(name)}={_NAMES[type(value)]}" for name, value in message.properties.items() if type(value) in _NAMES]
    if types:
        lines.append(f"{TYPES}:{','.join(types)}")
    for name, value in message.properties.items():
        _check_name(name)
        lines.append(f"{escaped(name)}:{escaped(_written(value))}")
    head = "".join([f"{line}\n" for line in lines]).encode()
    return Content(message.destination, head, message.size, message.body, message.expires_at, message)


def _check_name(name: str) -> None:
    if not name or "=" in name or "," in name or name in OF_A_FRAME or name in STANDARD or name in (MESSAGE, TYPES):
        raise UsageError(f"property {name!r} is not allowed; its name is a header of STOMP, or has no letter, or has = or ,")


def _written(value: Value) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def publication_of(content: Content, number: int) -> Publication:
    """Return the message of an application; one of another program is from publisher 0 and gets the `number`."""
    if content.publication is not None:
        return content.publication
    headers = read_headers(content.head)
    publisher, own = _named(headers.get(MESSAGE, ""))
    return Publication(
        publisher,
        number if own is None else own,
        content.destination,
        content.size,
        content.body,
        dict(_properties(headers)),
        _priority(headers),
        (_whole(headers.get("timestamp")) or 0) / 1000,
        content.expires_at,
    )


def is_typed(content: Content) -> bool:
    """Return whether the properties have the types their publisher gave them; else all are texts."""
    return content.head.startswith(MESSAGE.encode())


def selector_fields(content: Content) -> Mapping[str, Value]:
    """Return the properties and header fields of a message, by the names that selectors have for them (JMS 1.1, 3.8.1.1)."""
    headers = read_headers(content.head)
    fields = dict(_properties(headers))
    fields |= {jms: headers[name] for name, jms in _FIELDS.items() if name in headers}
    fields["JMSPriority"] = _priority(headers)
    fields["JMSDeliveryMode"] = "NON_PERSISTENT"
    stamp = _whole(headers.get("timestamp"))
    return fields if stamp is None else fields | {"JMSTimestamp": stamp}


def _properties(headers: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    types = dict(entry.partition("=")[::2] for entry in headers.get(TYPES, "").split(","))
    for name, text in headers.items():
        if name in OF_A_FRAME or name in STANDARD or name in (MESSAGE, TYPES):
            continue
        yield name, _value(types.get(name, ""), text)


def _value(kind: str, text: str) -> Value:
    """Return the value of a property; a text that is no value of its type stays a text."""
    try:
        if kind == "boolean":
            return text == "true"
        if kind == "float":
            return float(text)
        number = int(text) if kind == "int" and len(text) <= 20 else 1 << 63
        return number if -1 << 63 <= number < 1 << 63 else text
    except ValueError:
        return text


def _named(text: str) -> tuple[int, int | None]:
    """Return publisher and number of a message; publisher 0 and None for one that does not name them."""
    publisher, _, number = text.partition(".")
    first, second = _whole(publisher), _whole(number)
    return (0, None) if first is None or second is None else (first, second)


def _whole(text: str | None) -> int | None:
    """Return a whole number of 64 bits; None for anything else."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 19:
        return None
    return int(text)


def _priority(headers: Mapping[str, str]) -> int:
    found = _whole(headers.get("priority"))
    return USUAL_PRIORITY if found is None or not LEAST_PRIORITY <= found <= MOST_PRIORITY else found


def expiry_of(headers: Mapping[str, str]) -> float:
    """Return a time of expiry in seconds since 1970; 0 milliseconds stand for never, as in JMS."""
    return (_whole(headers.get("expires")) or inf) / 1000

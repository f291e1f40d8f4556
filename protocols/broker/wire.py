"""Frames of STOMP 1.2 as bytes (https://stomp.github.io/stomp-specification-1.2.html).

A frame is a command, headers, an empty line, the body, and a zero. What a broker of topics does not do (transactions, queues,
cumulative acknowledgements, stored messages) is decoded as `Refused`, so that the client is told.
"""

from collections.abc import Callable, Mapping
from typing import Final

from protocols.broker.content import KEEP, LONGEST_HEAD, MOST_PASSED_ON, OF_A_FRAME, TOPIC_ON_WIRE, expiry_of, has_room
from protocols.broker.framing import end_of_head
from protocols.broker.headers import escaped, read_headers
from protocols.broker.messages import (
    Ack,
    Beat,
    Connect,
    Connected,
    Content,
    Delivery,
    Disconnect,
    Failure,
    Receipt,
    Refused,
    Send,
    Subscribe,
    Unsubscribe,
)
from protocols.errors import UsageError, WireError
from protocols.jms import LONGEST_TOPIC, TOPIC
from protocols.machine import Message

__all__ = ["VERSION", "StompCodec", "size_of"]

VERSION = "1.2"
ACKNOWLEDGED: Final = "client-individual"
"""The `ack` of a subscription whose client acknowledges each message."""
_MOST_MILLISECONDS: Final = 10**9
_MOST_KEPT: Final = 3_600_000
"""Milliseconds for which a message is kept at most."""
_MOST_DIGITS: Final = 19
Headers = Mapping[str, str]


def size_of(message: Message) -> int:
    """Return the bytes of a frame, bodies without bytes included."""
    if isinstance(message, (Send, Delivery)):
        return len(_head(message)) + len(message.content.head) + 2 + message.content.size
    return len(_plain(message))


class StompCodec:
    """Encodes and decodes frames; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the bytes of a frame. UsageError for a message of another protocol."""
        if isinstance(message, (Send, Delivery)):
            content = message.content
            body = bytes(content.size) if content.body is None else content.body
            return b"".join((_head(message), content.head, b"\n", body, b"\0"))
        return _plain(message)

    def decode(self, data: bytes) -> Message:
        """Return the message in a frame or a heart-beat. Raises WireError and nothing else."""
        if data == b"\n":
            return Beat()
        start = end_of_head(data, 0, len(data))
        if start < 0 or data[-1:] != b"\0":
            raise WireError(f"{len(data)} bytes are no frame")
        line, _, head = data[:start].partition(b"\n")
        command, body = line.rstrip(b"\r"), data[start:-1]
        headers = read_headers(head, command not in _UNESCAPED)
        read = _READERS.get(command)
        if read is not None:
            return read(headers, head, body)
        if command in _UNSUPPORTED:
            return Refused(f"{command.decode()}: {_UNSUPPORTED[command]}", headers.get("receipt", ""))
        raise WireError(f"{command[:40]!r} is no command")


# Encoding ----------------------------------------------------------------------------------------------------------------


def _head(message: Send | Delivery) -> bytes:
    """Return the command and the headers of the frame of a message that is carried."""
    content = message.content
    destination = f"destination:{escaped(_written(content.destination))}\ncontent-length:{content.size}\n"
    if isinstance(message, Delivery):
        names = f"subscription:{escaped(message.subscription)}\nmessage-id:{escaped(message.message_id)}\n"
        return f"MESSAGE\n{names}{destination}{_optional('ack', message.ack)}".encode()
    keep = f"{KEEP}:{message.keep}\n" if message.keep else ""
    return f"SEND\n{destination}{_optional('receipt', message.receipt)}{keep}".encode()


def _plain(message: Message) -> bytes:
    """Return the bytes of a frame that carries no message."""
    write = _WRITERS.get(type(message))
    if write is None:
        raise UsageError(f"{message} is no frame that is sent")
    return write(message)


def _frame(command: str, **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}:{escaped(value)}\n" for name, value in headers.items() if value]
    return f"{command}\n{''.join(lines)}\n\0".encode()


def _optional(name: str, value: str) -> str:
    return f"{name}:{escaped(value)}\n" if value else ""


def _written(destination: str) -> str:
    return TOPIC_ON_WIRE + destination.removeprefix(TOPIC)


def _connect(message: Connect) -> bytes:
    # Headers of these two frames are not escaped.
    beats = f"{message.send_every},{message.hear_every}"
    return f"CONNECT\naccept-version:{','.join(message.versions)}\nhost:/\nheart-beat:{beats}\n\n\0".encode()


def _connected(message: Connected) -> bytes:
    beats = f"{message.send_every},{message.hear_every}"
    return f"CONNECTED\nversion:{VERSION}\nheart-beat:{beats}\nserver:{message.server}\n\n\0".encode()


def _subscribe(message: Subscribe) -> bytes:
    return _frame(
        "SUBSCRIBE",
        id=message.subscription,
        destination=_written(message.destination),
        selector=message.selector,
        receipt=message.receipt,
        ack=ACKNOWLEDGED if message.acknowledges else "",
    )


def _failure(message: Failure) -> bytes:
    body = message.reason.encode()
    head = f"ERROR\nmessage:{escaped(message.reason)}\n{_optional('receipt-id', message.receipt)}"
    return f"{head}content-type:text/plain\ncontent-length:{len(body)}\n\n".encode() + body + b"\0"


_WRITERS: Final[Mapping[type, Callable[..., bytes]]] = {
    Beat: lambda message: b"\n",
    Connect: _connect,
    Connected: _connected,
    Subscribe: _subscribe,
    Unsubscribe: lambda message: _frame("UNSUBSCRIBE", id=message.subscription, receipt=message.receipt),
    Ack: lambda message: _frame("ACK", id=message.ack, receipt=message.receipt),
    Disconnect: lambda message: _frame("DISCONNECT", receipt=message.receipt),
    Receipt: lambda message: _frame("RECEIPT", receipt_id=message.receipt),
    Failure: _failure,
}

# Decoding ----------------------------------------------------------------------------------------------------------------

_UNSUPPORTED: Final[Mapping[bytes, str]] = {
    b"NACK": "no message is sent again; ACK",
    b"BEGIN": "there are no transactions",
    b"COMMIT": "there are no transactions",
    b"ABORT": "there are no transactions",
}


def _topic(headers: Headers) -> str | None:
    """Return the destination of a frame as applications name it; None for one that is no topic."""
    name = headers.get("destination", "")
    topic = name.removeprefix(TOPIC_ON_WIRE)
    return TOPIC + topic if topic != name and 0 < len(topic.encode()) <= LONGEST_TOPIC else None


def _no_topic(headers: Headers) -> Refused:
    name = headers.get("destination", "")[:80]
    reason = f"destination: {name!r} is not allowed; {TOPIC_ON_WIRE}NAME, of at most {LONGEST_TOPIC} bytes"
    return Refused(reason, headers.get("receipt", ""))


def _content(headers: Headers, head: bytes, body: bytes, destination: str) -> Content:
    """Return what a frame carries, with the headers that are passed on."""
    lines = [line.rstrip(b"\r") for line in head.split(b"\n")]
    kept = [line + b"\n" for line in lines if line and line.partition(b":")[0].decode() not in OF_A_FRAME]
    return Content(destination, b"".join(kept), len(body), body, expiry_of(headers))


def _read_send(headers: Headers, head: bytes, body: bytes) -> Message:
    receipt, destination = headers.get("receipt", ""), _topic(headers)
    if "transaction" in headers:
        return Refused("transaction: there are no transactions", receipt)
    if headers.get("persistent") == "true":
        return Refused("persistent: messages are not stored; leave it out", receipt)
    keep = headers.get(KEEP, "0")
    if not (keep.isascii() and keep.isdigit() and len(keep) <= _MOST_DIGITS):
        return Refused(f"{KEEP}: {keep[:40]!r} is not allowed; a number of milliseconds", receipt)
    if destination is None:
        return _no_topic(headers)
    content = _content(headers, head, body, destination)
    if not has_room(content.head):
        return Refused(f"headers: a message has at most {MOST_PASSED_ON}, of {LONGEST_HEAD} bytes", receipt)
    return Send(content, receipt, min(int(keep), _MOST_KEPT))


def _read_delivery(headers: Headers, head: bytes, body: bytes) -> Message:
    name = headers.get("destination", "")
    if not name:
        raise WireError("a MESSAGE without a destination")
    destination = _topic(headers) or name
    content = _content(headers, head, body, destination)
    return Delivery(headers.get("subscription", ""), headers.get("message-id", ""), content, headers.get("ack", ""))


def _read_subscribe(headers: Headers, head: bytes, body: bytes) -> Message:
    receipt, destination, name = headers.get("receipt", ""), _topic(headers), headers.get("id", "")
    if not name:
        return Refused("id: is missing", receipt)
    ack = headers.get("ack", "auto")
    if ack not in ("auto", ACKNOWLEDGED):
        return Refused(f"ack: {ack[:40]!r} is not allowed; auto or {ACKNOWLEDGED}", receipt)
    if destination is None:
        return _no_topic(headers)
    return Subscribe(name, destination, headers.get("selector", ""), receipt, ack == ACKNOWLEDGED)


def _read_ack(headers: Headers, head: bytes, body: bytes) -> Message:
    receipt = headers.get("receipt", "")
    if "transaction" in headers:
        return Refused("transaction: there are no transactions", receipt)
    return Ack(headers["id"], receipt) if headers.get("id") else Refused("id: is missing", receipt)


def _read_unsubscribe(headers: Headers, head: bytes, body: bytes) -> Message:
    receipt = headers.get("receipt", "")
    return Unsubscribe(headers["id"], receipt) if headers.get("id") else Refused("id: is missing", receipt)


def _beats(headers: Headers) -> tuple[int, int]:
    """Return the two times of a heart-beat header in milliseconds. WireError for what is none."""
    first, _, second = headers.get("heart-beat", "0,0").partition(",")
    if not (first.isascii() and second.isascii() and first.isdigit() and second.isdigit() and len(first + second) <= 20):
        raise WireError(f"heart-beat: {headers['heart-beat'][:40]!r} is not allowed; two numbers of milliseconds")
    return min(int(first), _MOST_MILLISECONDS), min(int(second), _MOST_MILLISECONDS)


def _read_connect(headers: Headers, head: bytes, body: bytes) -> Message:
    versions = tuple(headers.get("accept-version", "1.0").split(","))
    return Connect(versions, *_beats(headers))


_UNESCAPED: Final = (b"CONNECT", b"STOMP", b"CONNECTED")
"""Frames whose headers have no escapes (STOMP 1.2, Value Encoding): a backslash in a password is itself."""
_READERS: Final[Mapping[bytes, Callable[[Headers, bytes, bytes], Message]]] = {
    b"CONNECT": _read_connect,
    b"STOMP": _read_connect,
    b"CONNECTED": lambda headers, head, body: Connected(headers.get("server", ""), *_beats(headers)),
    b"SEND": _read_send,
    b"MESSAGE": _read_delivery,
    b"SUBSCRIBE": _read_subscribe,
    b"UNSUBSCRIBE": _read_unsubscribe,
    b"ACK": _read_ack,
    b"DISCONNECT": lambda headers, head, body: Disconnect(headers.get("receipt", "")),
    b"RECEIPT": lambda headers, head, body: Receipt(headers.get("receipt-id", "")),
    b"ERROR": lambda headers, head, body: Failure(headers.get("message", ""), headers.get("receipt-id", "")),
}

"""The frames of STOMP 1.2 that a broker and its clients exchange, one class for each command."""

from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

from protocols.jms import JmsMessage
from protocols.machine import Message

__all__ = [
    "Ack",
    "Beat",
    "Connect",
    "Connected",
    "Content",
    "Delivery",
    "Disconnect",
    "Failure",
    "Receipt",
    "Refused",
    "Send",
    "Subscribe",
    "Unsubscribe",
]


@dataclass(frozen=True, slots=True)
class Content:
    """A message as its publisher sent it: the broker passes it on as it is, one object for all copies.

    `head` has the encoded headers but those of the frame, such as the destination. `publication` is the message that it was
    made of; one that was decoded has None, and `protocols.broker.content.publication_of` makes it.
    """

    destination: str
    """As in the workload: topic:NAME."""
    head: bytes
    size: int
    """Bytes of the body."""
    body: bytes | None = field(default=None, repr=False, hash=False)
    """None: the body has a size only."""
    expires_at: float = inf
    """Seconds since 1970."""
    publication: JmsMessage | None = field(default=None, repr=False, compare=False)


@dataclass(slots=True)
class Beat(Message):
    """An end of line between frames."""

    kind: ClassVar[str] = "beat"


@dataclass(slots=True)
class Connect(Message):
    """CONNECT of a client.

    `send_every` and `hear_every` are the milliseconds between heart-beats that it can send, and that it requests; 0: none.
    """

    kind: ClassVar[str] = "connect"
    versions: tuple[str, ...] = ("1.2",)
    send_every: int = 0
    hear_every: int = 0


@dataclass(slots=True)
class Connected(Message):
    """The broker is ready for a client. `server` is its name, the times are those of `Connect` from its side."""

    kind: ClassVar[str] = "connected"
    is_feedback: ClassVar[bool] = True
    server: str = ""
    send_every: int = 0
    hear_every: int = 0


@dataclass(slots=True)
class Send(Message):
    """A message of a publisher. The broker answers with `receipt` when it has accepted the message; empty: it does not.

    `keep` are the milliseconds for which it is kept for subscriptions that come late (`Broker`); 0: it is not.
    """

    kind: ClassVar[str] = "send"
    content: Content
    receipt: str = ""
    keep: int = 0

    @property
    def brief(self) -> str:
        """The receipt-id of the reply."""
        return self.receipt


@dataclass(slots=True)
class Delivery(Message):
    """A copy of a message for one subscription (MESSAGE), whose client acknowledges it by `ack`; empty: it does not."""

    kind: ClassVar[str] = "message"
    subscription: str
    message_id: str
    content: Content
    ack: str = ""

    @property
    def brief(self) -> str:
        """The broker's name for the message."""
        return self.message_id


@dataclass(slots=True)
class Subscribe(Message):
    """SUBSCRIBE to the messages of a topic that match a selector; `subscription` is the client's id of it.

    `acknowledges`: the client acknowledges each message (ack:client-individual).
    """

    kind: ClassVar[str] = "subscribe"
    subscription: str
    destination: str
    selector: str = ""
    receipt: str = ""
    acknowledges: bool = False


@dataclass(slots=True)
class Unsubscribe(Message):
    """A subscription ends."""

    kind: ClassVar[str] = "unsubscribe"
    subscription: str
    receipt: str = ""


@dataclass(slots=True)
class Ack(Message):
    """ACK: a subscriber has the copy of this `Delivery.ack`."""

    kind: ClassVar[str] = "ack"
    is_feedback: ClassVar[bool] = True
    ack: str
    receipt: str = ""

    @property
    def brief(self) -> str:
        """The broker's name for the copy."""
        return self.ack


@dataclass(slots=True)
class Disconnect(Message):
    """A client ends."""

    kind: ClassVar[str] = "disconnect"
    receipt: str = ""


@dataclass(slots=True)
class Receipt(Message):
    """RECEIPT: the frame that requested it was processed."""

    kind: ClassVar[str] = "receipt"
    is_feedback: ClassVar[bool] = True
    receipt: str

    @property
    def brief(self) -> str:
        """The receipt-id in the client's frame."""
        return self.receipt


@dataclass(slots=True)
class Failure(Message):
    """The broker refuses what a client sent, and ends the connection (ERROR)."""

    kind: ClassVar[str] = "error"
    is_feedback: ClassVar[bool] = True
    reason: str
    receipt: str = ""


@dataclass(slots=True)
class Refused(Message):
    """A frame that is well formed and asks for what the broker does not do; never sent, only decoded."""

    kind: ClassVar[str] = "refused"
    reason: str
    receipt: str = ""

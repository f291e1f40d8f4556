"""Groups of machines that receive the same messages, as a host uses them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from protocols.fast.deferred import Missed
from protocols.fast.feedback import FeedbackBatch
from protocols.machine import Address, Message

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = ["Late", "MachineGroup", "SenderGroup"]


class Late(Protocol):
    """A lookahead that advances the group later than messages arrive: whenever the group's state is needed."""

    def sync(self) -> None:
        """Advance the group to the present."""

    def wake_in_lockstep(self) -> None:
        """Note that machines may have diverged, so that the next message has to be delivered at its time."""

    def unfold(self) -> None:
        """Go on without lookahead."""


class MachineGroup(ABC):
    """The machines that receive the same messages; those in the same state are advanced together.

    Messages that some machines lose are given with the indices of these.
    """

    __slots__ = ("send_batch",)

    def __init__(self) -> None:
        self.send_batch: Callable[[FeedbackBatch, float], None] | None = None
        """Sends what several machines of the group send at one instant (seconds); None: each sends on its own."""

    @abstractmethod
    def tell(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver a message to all machines but those at the indices `lost_by`."""

    @abstractmethod
    def follow(self, burst: "Burst") -> "SenderGroup":
        """Return the group that is advanced over the messages of this burst and others of its sender."""

    @abstractmethod
    def dissolve(self) -> None:
        """Make every machine independent; the group is not used any more."""


class SenderGroup(MachineGroup):
    """The machines of a group as the receivers of one sender.

    While a lookahead is active (`late`), it advances the group over the messages of bursts by `defer` and `move`, and calls
    `pass_on` for those that must be delivered at their time.
    """

    __slots__ = ("_position", "late")

    def __init__(self) -> None:
        super().__init__()
        # That of the machines in lockstep.
        self._position: object = object()
        self.late: Late | None = None
        """The lookahead that advances the group, if any."""

    def follow(self, burst: "Burst") -> "SenderGroup":
        """Return the group."""
        del burst
        return self

    @abstractmethod
    def release(self, machine: Any) -> None:
        """Update the machine's own state, because it gets an input of its own; it has diverged then."""

    @abstractmethod
    def stands_at(self, position: object) -> bool:
        """Return whether all machines are at this position, so that a message that expects it only advances them."""

    @abstractmethod
    def move(self, position: object, heard: float, following: int) -> None:
        """Advance the group over messages without another effect, the last received at `heard` seconds.

        `following` is the number of the next message.
        """

    @abstractmethod
    def defer(self, missed: Iterable[Missed], begin: int, sent: Sequence[float], base: int, steps: Sequence[float]) -> None:
        """Record losses of messages among those from number `begin` on that `move` advances over.

        Message n arrived when the `steps` (seconds) are added one by one to `sent[n - base]`.
        """

    @abstractmethod
    def pass_on(
        self, burst: "Burst", nth: int, number: int, source: Address, to: Address, now: float, lost_by: Sequence[int]
    ) -> None:
        """Deliver burst message `nth`, which has the number `number` on this path."""

    @abstractmethod
    def call_in(self) -> None:
        """Apply all deferred losses; called before an event other than the next message."""

    @abstractmethod
    def gather(self) -> None:
        """Take diverged machines that are at the group's position into lockstep again."""

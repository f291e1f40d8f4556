"""Parameters of a running NORM receiver: nacking modes, repair boundaries, and its senders."""

from abc import abstractmethod
from collections.abc import Iterator

from protocols.errors import UsageError
from protocols.events import NodeClash
from protocols.machine import Address, Group, Ports
from protocols.norm.config import NormConfig
from protocols.norm.limits import CLASHES, host_of
from protocols.norm.maps import DeadlineMap
from protocols.norm.nack_modes import BOUNDARIES, MODES
from protocols.norm.session import Session
from protocols.norm.stream_reception import StreamSenderState
from protocols.serial import before

__all__ = ["ReceiverControl"]


class ReceiverControl(Session):
    """A receiver whose application sets what is requested of single senders and objects, each by `Host.call`."""

    __slots__ = ("_senders",)

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        self._senders: DeadlineMap[StreamSenderState] = DeadlineMap()

    @property
    def session(self) -> Session:
        """The receiver itself, as its sender states use it."""
        return self

    @abstractmethod
    def settle(self, sender: StreamSenderState) -> None:
        """Set the deadline after an input that may have changed when this sender is to be woken."""

    @abstractmethod
    def _known(self, node: int) -> StreamSenderState | None:
        """Return the state of the sender `node`; None if no message of it was received."""

    def set_nacking(self, mode: str, sender: int | None, object_id: int | None, now: float) -> None:
        """Request all that is missing ("normal"), only NORM_INFO ("info"), or nothing ("none"); call through `Host.call`.

        Of one object; without `object_id` of all objects of a sender that have no mode of their own; without `sender` of the
        senders heard from now on. Raises UsageError for a sender that was not heard, and for an unknown mode.
        """
        _check_mode("nacking", mode, MODES)
        if sender is None:
            self.session.extras.nacking = mode
            return
        state = self._heard(sender)
        state.change_modes().set(mode, object_id, state.objects, state.position.object_id)
        self._check(state, now)

    def set_repair_boundary(self, boundary: str, sender: int | None, now: float) -> None:
        """Look for a sender's losses behind each "block" or each "object"; without `sender` for those heard from now on."""
        _check_mode("repair boundary", boundary, BOUNDARIES)
        if sender is None:
            self.session.extras.boundary = boundary
            return
        state = self._heard(sender)
        state.change_modes().boundary = boundary
        self._check(state, now)

    def forget_sender(self, node: int, now: float) -> bool:
        """Give up a sender's objects and forget it; return False if it was not heard. It is new with its next message."""
        del now
        state = self._senders.get(node)
        if state is None:
            return False
        del self._senders[node]
        state.forget()
        self._due(self._senders.deadline())
        return True

    def origin_of(self, node: int) -> tuple[int, int]:
        """Return a sender with its instance id; 0 for one that was not heard."""
        state = self._known(node)
        return node, 0 if state is None or state.origin is None else state.origin.instance_id

    def incomplete_before(self, node: int, object_id: int) -> Iterator[int]:
        """Return the ids of the objects of the sender `node` before this one that are incomplete."""
        state = self._known(node)
        return iter(()) if state is None else (key for key in state.objects if before(key, object_id))

    def _check(self, state: StreamSenderState, now: float) -> None:
        """Look for what is to be requested now, which was not before."""
        state.check(state.position.tx_point, now)
        self.settle(state)

    def _heard(self, node: int) -> StreamSenderState:
        """Return the state of the sender `node`. Raises UsageError if no message of it was received."""
        state = self._known(node)
        if state is None:
            raise UsageError(f"sender {node} has not been heard")
        return state

    def _clash(self, source: Address) -> None:
        """Report a host that uses this node's id, once."""
        host, extras = host_of(source), self.extras
        if len(extras.clashes) < CLASHES and host not in extras.clashes:
            extras.clashes = (*extras.clashes, host)
            self.ports.notify(NodeClash(self.session.node, str(host)))


def _check_mode(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name}: {value!r} is not allowed; one of {', '.join(allowed)}")

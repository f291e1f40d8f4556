"""The receivers' side of the protocols A, N1 and N2 (Towsley, Kurose, Pingali 1997)."""

from typing import ClassVar

from protocols.arq.config import N2Config
from protocols.arq.messages import Ack, Data, Nack
from protocols.arq.repair_policy import MissingUnit, RepairPolicy
from protocols.arq.session import Session
from protocols.machine import Address

__all__ = ["AckPolicy", "NackPolicy", "SuppressedNackPolicy"]


class AckPolicy(RepairPolicy):
    """Protocol A: acknowledge every DATA message to the sender, whose timers do the rest."""

    __slots__ = ("_acks", "_session")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._acks = 0

    def on_received(self, message: Data, source: Address, is_new: bool, now: float) -> None:
        """Acknowledge the unit, also when it is a duplicate: the first ACK may be lost."""
        self._acks += 1
        session = self._session
        session.send(Ack(message.sender, message.instance, message.object_id, message.unit, session.node), source)

    def counts(self) -> dict[str, int]:
        """Return the ACKs sent."""
        return {"acks_sent": self._acks}


class NackPolicy(RepairPolicy):
    """Protocol N1: request a missing unit from the sender at once, and again after each `timeout`."""

    __slots__ = ("_nacks", "_session", "_timeouts")
    requests: ClassVar[bool] = True

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._nacks = self._timeouts = 0

    def on_missing(self, missing: MissingUnit, now: float) -> float | None:
        """Request the unit."""
        return self._request(missing, missing.origin.address, now)

    def on_due(self, missing: MissingUnit, now: float) -> float:
        """Request the unit again, since no repair came."""
        self._timeouts += 1
        return self._request(missing, missing.origin.address, now)

    def counts(self) -> dict[str, int]:
        """Return the NACKs sent, and how many requested repairs did not come in time."""
        return {"nacks_sent": self._nacks, "timeouts": self._timeouts}

    def _request(self, missing: MissingUnit, to: Address, now: float) -> float:
        """Send a NACK; the timer waits `timeout` seconds for the repair."""
        missing.requested = True
        missing.tries += 1
        self._nacks += 1
        self._session.send(missing.request(self._session.node), to)
        return now + self._session.config.timeout


class SuppressedNackPolicy(NackPolicy):
    """Protocol N2: request a missing unit from the group after a random back-off, unless another did before."""

    __slots__ = ("_nacks_heard", "_suppressed")
    overhears: ClassVar[bool] = True

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._suppressed = self._nacks_heard = 0

    def on_missing(self, missing: MissingUnit, now: float) -> float | None:
        """Start the back-off."""
        return self._back_off(missing, now)

    def on_due(self, missing: MissingUnit, now: float) -> float:
        """Request the unit at the end of the back-off; back off again when a requested repair did not come."""
        if missing.requested:
            self._timeouts += 1
            return self._back_off(missing, now)
        return self._request(missing, self._session.group, now)

    def on_overheard(self, nack: Nack, missing: MissingUnit | None, now: float) -> float | None:
        """Suppress a NACK that is still in its back-off, and wait for the repair that the other receiver requested."""
        self._nacks_heard += 1
        if missing is None:
            return None
        if not missing.requested:
            self._suppressed += 1
            missing.requested = True
            missing.tries += 1
        return now + self._session.config.timeout

    def counts(self) -> dict[str, int]:
        """Return what N1 counts, the NACKs suppressed and those of others that were received."""
        return {**super().counts(), "nacks_suppressed": self._suppressed, "nacks_heard": self._nacks_heard}

    def _back_off(self, missing: MissingUnit, now: float) -> float:
        missing.requested = False
        config = self._session.config
        assert isinstance(config, N2Config)
        return now + config.window * self._session.ports.rng.uniform()

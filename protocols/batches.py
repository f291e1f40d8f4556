"""What a host offers a machine beyond `Ports`: packets in batches, a choice before they are decoded, and another thread.

A machine need not use any of it.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from protocols.machine import Address, Codec
from protocols.run import Run

__all__ = ["Assisted", "Background", "Pending", "RunCodec", "RunReceiver", "Selective"]


@runtime_checkable
class RunCodec(Codec, Protocol):
    """A codec of a protocol that has runs."""

    def encode_run(self, run: Run) -> list[bytes]:
        """Return the UDP payload of each message of a run."""

    def decode_run(self, data: bytes, start: int, segment: int) -> Run | None:
        """Return the run that begins at offset `start`, None where none of at least two messages does.

        `data` holds packets of `segment` bytes each, the last of which may be shorter. Raises nothing.
        """


@runtime_checkable
class RunReceiver(Protocol):
    """A machine that receives the runs its protocol's codec decodes."""

    def receive_run(self, run: Run, source: Address, to: Address, now: float) -> None:
        """Process the messages of a run."""


@runtime_checkable
class Selective(Protocol):
    """A machine that decides by the first bytes of a packet whether it is to be decoded.

    A host asks while it can't keep up, and for large packets, so that a flood costs little.
    """

    def is_worth_decoding(self, data: bytes, source: Address, now: float) -> bool:
        """Return False for a message that would change nothing. Raises nothing; malformed bytes may be worth decoding."""


class Pending(Protocol):
    """The result of a call in another thread."""

    def result(self) -> Any:
        """Wait for the call to end and return its result."""


Background: TypeAlias = Callable[..., Pending]
"""Calls a pure function with arguments in another thread; calls are made in order."""


@runtime_checkable
class Assisted(Protocol):
    """A machine that uses what a real host offers; the host calls these methods before `start`. The messages stay the same."""

    def send_runs(self, most: int) -> None:
        """Allow the machine to send up to `most` messages as one `Run`."""

    def compute_in(self, background: Background) -> None:
        """Allow the machine to have another thread compute what it will need."""

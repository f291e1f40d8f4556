"""The explanation of an object at a receiver: its outcome, where the time went, the cause, and the chain of steps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

__all__ = ["FORMAT", "Cause", "Explanation", "Outcome", "Step"]

FORMAT = "mcastlab explain 1"


@dataclass(slots=True)
class Step:
    """One link of the chain: what happened when and where, with the packet that shows it.

    `packet` is the number of the packet in the trace (0: none), `frames` its numbers in capture files, `line` the line of the
    ladder that shows it (0: none).
    """

    what: str
    time: float
    node: str
    text: str
    packet: int = 0
    frames: Mapping[str, int] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of most of the delay: its name, one sentence, and the seconds it cost."""

    name: str
    text: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the object: `received`, `aborted`, `missing` or `unknown`, and when."""

    state: str
    time: float | None
    text: str


@dataclass(slots=True)
class Explanation:
    """The explanation of an object at a receiver. `spent` are the seconds of each phase, `unknown` what was not recorded."""

    record: str
    sender: str
    receiver: str
    object_id: int
    outcome: Outcome
    cause: Cause
    spent: dict[str, float]
    chain: list[Step]
    unknown: list[str]

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "format": FORMAT,
            "record": self.record,
            "sender": self.sender,
            "receiver": self.receiver,
            "object": self.object_id,
            "outcome": asdict(self.outcome),
            "cause": asdict(self.cause),
            "spent": {name: seconds for name, seconds in self.spent.items() if seconds < inf},
            "chain": [asdict(step) for step in self.chain],
            "unknown": self.unknown,
        }

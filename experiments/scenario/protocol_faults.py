"""Find where in the source of an external protocol an exception was raised, for its author."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.scenario.protocol_modules import external_sources

__all__ = ["ProtocolFault", "fault_in", "with_place"]

_MOST_FRAMES = 5


@dataclass(frozen=True, slots=True)
class ProtocolFault:
    """An exception that an external protocol raised, or caused in what it called.

    `summary` names the exception, and file and line of the innermost call in the protocol; `frames` are the last calls there.
    """

    file: str
    summary: str
    frames: str


def fault_in(error: BaseException) -> ProtocolFault | None:
    """Return the fault of an external protocol that an exception tells of; None if none was running."""
    own = _own_frames(error)
    if not own:
        return None
    last = own[-1]
    frames = [f"  line {frame.lineno}, in {frame.name}: {frame.line}" for frame in own[-_MOST_FRAMES:]]
    return ProtocolFault(
        last.filename, f"{last.filename}: line {last.lineno}, in {last.name}: {_words(error)}", "\n".join(frames)
    )


def with_place(error: BaseException) -> str:
    """Return an exception in words, with the file and line in an external protocol if it came from there."""
    own = _own_frames(error)
    return f"{_words(error)} ({own[-1].filename}:{own[-1].lineno})" if own else _words(error)


def _own_frames(error: BaseException) -> Sequence[traceback.FrameSummary]:
    """Return the calls in external protocols that led to an exception, the innermost last."""
    sources = external_sources()
    return [frame for frame in traceback.extract_tb(error.__traceback__) if _lies_in(Path(frame.filename), sources)]


def _lies_in(path: Path, sources: frozenset[Path]) -> bool:
    return path in sources or not sources.isdisjoint(path.parents)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"

"""Check every rule of the contract on one protocol."""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

from experiments.contract import checks
from experiments.contract.case import Case
from experiments.contract.losses import randomly
from experiments.contract.worlds import WORLDS
from protocols.errors import ConfigError, UnsupportedError
from protocols.spec import ProtocolSpec

__all__ = ["Finding", "case_of", "examine"]

SHORT = {"segment": 500, "rate": 1e6}
"""Config values (bytes, bytes per second) for settings that every protocol has."""
LOSSES = (0.0, 0.05, 0.2, 0.4, 0.6)
"""Loss probabilities of the rule on the end of a session."""
FAILING = (("write", 0), ("write", 5), ("read", 0), ("commit", 0))
"""Sink methods that fail, and the number of calls that succeed before."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one rule: "ok", "broken" with `reason`, or "skipped" where this machine can't check it."""

    rule: str
    about: str
    """The world, loss or failure it was checked under; empty for a rule without parameters."""
    status: Literal["ok", "broken", "skipped"]
    reason: str = ""


def case_of(spec: ProtocolSpec, settings: dict[str, Any]) -> Case:
    """Make the case of a protocol with short segments and `settings`. ConfigError when its config refuses them."""
    names = {item.name for item in fields(spec.config)}
    chosen = {key: value for key, value in SHORT.items() if key in names} | settings
    try:
        spec.config(**chosen)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"CONTRACT of {spec.name}: {error}") from error
    return Case(spec, chosen)


def examine(case: Case) -> Iterator[Finding]:
    """Check each rule and yield its finding. UnsupportedError where Python runs without assertions (-O)."""
    if not __debug__:
        raise UnsupportedError("contract: its rules are assertions; run Python without -O and PYTHONOPTIMIZE")
    for check, about in _rules(case):
        yield _finding(check, about)


def _rules(case: Case) -> Iterator[tuple[Callable[[], None], str]]:
    """Yield every rule with its parameters, and a text that names the parameters."""
    for plain in (checks.config_is_checked, checks.codec_keeps_messages_and_refuses_noise, checks.counters_are_numbers):
        yield partial(plain, case), ""
    for name, world in WORLDS.items():
        for loss in (0.0, 0.1):
            yield partial(checks.arrives, case, world, loss), f"{name}, loss {loss:.0%}"
        yield partial(checks.answers_after_events, case, world), name
    for plain in (
        checks.quiet_at_the_end,
        checks.late_wakes_are_harmless,
        checks.early_wakes_change_nothing,
        checks.repeats_itself,
        checks.dead_receiver_stops_nobody,
        checks.unwanted_objects_are_left,
        checks.simulated_content_arrives,
        checks.full_network_is_respected,
    ):
        yield partial(plain, case), ""
    for loss in LOSSES:
        yield partial(checks.ends_whatever_is_lost, case, randomly(loss)), f"loss {loss:.0%}"
    yield partial(checks.strangers_are_ignored, case, []), ""
    yield partial(checks.damaged_messages_are_harmless, case), ""
    for verb, after in FAILING:
        for abort_too in (False, True):
            about = f"{verb} number {after + 1}{' and abort' if abort_too else ''}"
            yield partial(checks.failing_sink_ends_its_object, case, verb, after, abort_too), about


def _finding(check: Callable[[], None], about: str) -> Finding:
    rule = _first_line(check)
    try:
        check()
    except OSError as error:
        return Finding(rule, about, "skipped", f"this machine has no multicast on 127.0.0.1 ({error})")
    except (Exception, SystemExit) as error:  # noqa: BLE001 a protocol under test may raise anything, and that is the finding
        return Finding(rule, about, "broken", _reason(error))
    return Finding(rule, about, "ok")


def _first_line(check: Any) -> str:
    return str(check.func.__doc__).partition("\n")[0].rstrip(".")


def _reason(error: BaseException) -> str:
    """Return the message of a failed assertion; for other errors also the type and the line that raised it."""
    if isinstance(error, AssertionError):
        return " ".join(str(error).split()) or "an assertion without a message"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({last.filename}:{last.lineno})"

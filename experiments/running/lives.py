"""Join the results of a program over all lives of its host, which ran in processes of their own."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final, TypeAlias

from experiments.running.machine_state import counts_of
from protocols.machine import Machine
from protocols.snapshot import MEASURES

__all__ = ["NO_COUNTS", "add_counts", "join_lives", "longest_of", "total_counts", "until_crash"]

Result: TypeAlias = Mapping[str, Any]
NO_COUNTS: Final[Mapping[str, int]] = {}
"""The counters of a program before its first machine has ended; one object for all, since a run may have many programs."""
_GAUGES: Final = frozenset(name for name, measure in MEASURES.items() if measure.kind == "gauge")


def add_counts(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of counters by name, and of what is no sum, as jitter, the largest."""
    total: dict[str, int] = {}
    for name, count in chain.from_iterable(each.items() for each in counts):
        before = total.get(name, 0)
        total[name] = max(before, count) if name in _GAUGES else before + count
    return total


def total_counts(earlier: Mapping[str, int], machine: Machine | None) -> Mapping[str, int]:
    """Return the sums of the counters of earlier machines and of the present one, if there is one."""
    if machine is None:
        return earlier
    counts = counts_of(machine)
    return add_counts(earlier, counts) if earlier else counts


def longest_of(*queues: Sequence[int]) -> list[int]:
    """Return the maximum at each place of lists that may differ in length."""
    return [max(lengths) for lengths in zip_longest(*queues, fillvalue=0)]


def until_crash(result: Result) -> Result:
    """Return the result of a life whose subscriptions end with it if a crash ended it, as `SubscriberProgram.crash` does."""
    at = result.get("crashed_at")
    if at is None:
        return result
    if "parts" in result:
        return {**result, "parts": [until_crash({**part, "crashed_at": at}) for part in result["parts"]]}
    if result["role"] != "subscriber":
        return result
    ended = [
        {**each, "spans": [[begin, at, "crashed"] if end is None else [begin, end, why] for begin, end, why in each["spans"]]}
        for each in result["subscriptions"]
    ]
    return {**result, "subscriptions": ended}


def join_lives(results: Sequence[Result]) -> dict[str, Any]:
    """Return one result for those of several lives, in order.

    Counters are summed, and what was published and delivered is kept. What a life received or sent as objects is that of the
    last one, since a restarted program begins anew.
    """
    *earlier, last = results
    if not earlier:
        return dict(last)
    if "parts" in last:
        lives = [result["parts"] for result in results]
        return {**last, "parts": [join_lives(parts) for parts in zip(*lives, strict=True)]}
    joined = {**last, "counts": add_counts(*(result.get("counts", {}) for result in results))}
    join = _JOIN.get(last["role"])
    return joined if join is None else joined | join(results)


def _publisher(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "lives": [life for result in results for life in result["lives"]],
        "blocked": sum(result["blocked"] for result in results),
        "queues": longest_of(*(result.get("queues", ()) for result in results)),
    }


def _subscriber(results: Sequence[Result]) -> dict[str, Any]:
    accounts = zip(*(result["subscriptions"] for result in results), strict=True)
    return {
        "subscriptions": [_account(lives) for lives in accounts],
        "expired": [entry for result in results for entry in result["expired"]],
        "lost": [entry for result in results for entry in result["lost"]],
        "damaged": sum(result["damaged"] for result in results),
    }


def _account(lives: Sequence[Result]) -> dict[str, Any]:
    """Join the accounts of one subscription."""
    delivered = [life["delivered"] for life in lives]
    return {
        **lives[-1],
        "spans": [span for life in lives for span in life["spans"]],
        "delivered": {key: [value for each in delivered for value in each[key]] for key in delivered[-1]},
    }


_JOIN: Mapping[str, Callable[[Sequence[Result]], dict[str, Any]]] = {"publisher": _publisher, "subscriber": _subscriber}

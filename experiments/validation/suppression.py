"""NACK suppression by NORM receivers (RFC 5401 3.2.2): NACKs per loss, and time to the first NACK.

Every second object, of one packet, is lost on the trunk, so that all receivers detect its loss simultaneously, by the next
object. Pairs of objects are spaced so that each loss is repaired before the next. There is no parity and no probing: receivers
use the advertised GRTT, and the true group size. Unicast NACKs repeated by the sender reach other receivers after one GRTT
instead of half; they are measured as multicast NACKs over a star of that delay, because only the delay matters.
"""

from collections.abc import Mapping

from experiments.validation.references import Families, Measured, Reference, mean_of
from experiments.validation.testbed import StarTestbed, run_session
from protocols.machine import Message
from protocols.norm.backoff import backoff
from protocols.norm.messages import FLAG_REPAIR, Data, Nack
from protocols.norm.quantise import rtt_code, rtt_seconds
from protocols.rng import Rng, key_of

__all__ = ["FAMILIES", "losses"]

SIZE = 1000
GRTT = rtt_seconds(rtt_code(0.1))
EVENTS = 2000
DELIVERIES = 1e7
"""Budget of packet deliveries at full effort; large groups have fewer events, with a larger standard error."""
SAMPLES = 100_000


def losses(group: int, losers: int, factor: int, delay: float, events: int, seed: int) -> tuple[list[float], list[float]]:
    """Return (NACKs, times to the first NACK in GRTT) of `events` losses; `delay` between receivers is in GRTT."""
    spacing = (3 * factor + 8) * GRTT
    settings = {
        "rate": 1e9,
        "parity": 0,
        "fec": 0,
        "grtt": GRTT,
        "probing": "none",
        "backoff": factor,
        "gsize": group,
        "robust": 1,
    }
    star = StarTestbed(losers, delay=delay * GRTT / 2, trunk=(1 - delay) * GRTT / 2, lose=_is_odd)
    pairs = [(event * spacing, SIZE) for event in range(1, events + 1) for _ in range(2)]
    outcome = run_session(star, "norm", settings, (0.0, SIZE), *pairs, seed=seed, wanted=_matters)
    assert outcome.complete == losers, "a receiver misses something"
    counts: list[float] = []
    firsts: list[float] = []
    detected = 0.0
    for when, message in outcome.received:
        if isinstance(message, Data):
            detected = when
            counts.append(0.0)
        else:
            if not counts[-1]:
                firsts.append((when - detected) / GRTT - delay)
            counts[-1] += 1.0
    return counts[1:], firsts


def _is_odd(identity: int) -> bool:
    """Return whether this is content of an object with an odd number."""
    return identity >> 32 & 1 == 1


def _matters(message: Message) -> bool:
    """Return whether a message is a NACK, or a packet that reveals a loss."""
    return isinstance(message, Nack) or (
        isinstance(message, Data) and not message.flags & FLAG_REPAIR and message.object_id % 2 == 0
    )


def _measure(reference: Reference, effort: float) -> tuple[list[float], list[float]]:
    params = reference.params
    group, losers = params["G"], params.get("losers", params["G"])
    events = int(max(effort * min(EVENTS, DELIVERIES / (losers * (4 + _talk(reference)))), 8))
    return losses(group, losers, params["K"], params.get("d_over_GRTT", 0.5), events, key_of(1, reference.id) % 2**32)


def _talk(reference: Reference) -> float:
    return reference.values["value"] if reference.family.startswith("nack_count") else 5.0


def _count(reference: Reference, effort: float) -> Mapping[str, Measured]:
    return {"value": mean_of(_measure(reference, effort)[0])}


def _latency(reference: Reference, effort: float) -> Mapping[str, Measured]:
    return {"value": mean_of(_measure(reference, effort)[1])}


def _function(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the back-off function: its quantiles, or mean and variance of many draws."""
    params = reference.params
    if "u" in params:
        return {"value": Measured(backoff(params["u"], params["T"], params["G"]))}
    rng = Rng(key_of(1, reference.id))
    draws = [backoff(rng.uniform(), params["T"], params["G"]) for _ in range(int(max(SAMPLES * effort, 1000)))]
    mean = mean_of(draws)
    if reference.id.startswith("nack.mean"):
        return {"value": mean}
    return {"value": mean_of([(draw - mean.value) ** 2 for draw in draws])}


FAMILIES: Families = {
    "nack_backoff_fn": _function,
    "nack_count": _count,
    "nack_count_delay": _count,
    "nack_count_subset": _count,
    "nack_count_unicast": _count,
    "nack_latency": _latency,
    "nack_latency_subset": _latency,
}

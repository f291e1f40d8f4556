"""Repetition without coding (N2), and sender- and receiver-initiated protocols (A, N1, N2): counts of the real machines.

Link delays are negligible, feedback is never lost, and timers are so long compared with delays that NACK suppression is
practically ideal: one NACK per round. Processing times are operation counts multiplied by the costs of the reference.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from experiments.validation.references import Families, Measured, Reference, mean_of
from experiments.validation.testbed import SessionOutcome, StarTestbed, run_session
from protocols.arq.messages import Data
from protocols.machine import Message
from protocols.rng import key_of

__all__ = ["FAMILIES", "transmissions"]

DELAY = 1e-6
SEGMENT = 100
COMMON = {"rate": 1e9, "segment": SEGMENT, "timeout": 0.5}
SETTINGS: dict[str, dict[str, Any]] = {
    "a": COMMON,
    "n1": {**COMMON, "gather": 0.01, "hold": 0.01},
    "n2": {**COMMON, "gather": 0.0, "hold": 1e-4, "window": 1.0},
}
PACKETS = 5000
DELIVERIES = 2e7
"""Budget of packet deliveries at full effort; large groups send fewer packets, with a larger standard error."""
BATCHES, FEW = 16, 4
"""Independent sessions, and their number with more than MANY receivers."""
MANY = 1000


def transmissions(star: StarTestbed, packets: int, seed: int) -> list[int]:
    """Return how often each of `packets` packets was sent until every receiver had it."""
    outcome = run_session(star, "n2", SETTINGS["n2"], (0.0, packets * SEGMENT), seed=seed, wanted=_is_content)
    assert outcome.complete == star.receivers, "a receiver misses something"
    sent = Counter(message.unit for _, message in outcome.received if isinstance(message, Data))
    return [sent[unit] for unit in range(1, packets + 1)]


def _is_content(message: Message) -> bool:
    return isinstance(message, Data)


def _budget(receivers: int, each: float, effort: float, least: int) -> int:
    return max(int(effort * min(PACKETS, DELIVERIES / (receivers * each))), least)


def _samples(reference: Reference, effort: float, star: StarTestbed, least: int) -> list[int]:
    packets = _budget(star.receivers, 2 * reference.values["value"], effort, least)
    return transmissions(star, packets, key_of(1, reference.id) % 2**32)


def _repetition(reference: Reference, effort: float) -> Mapping[str, Measured]:
    params = reference.params
    loss = params["p"] if "p" in params else params["p_tail"]
    star = StarTestbed(params["R"], delay=DELAY, loss=loss, trunk_loss=params.get("p_shared", 0.0))
    return {"value": mean_of([float(count) for count in _samples(reference, effort, star, 40)])}


def _goodput(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the fraction of first transmissions among all transmissions."""
    params = reference.params
    star = StarTestbed(params["R"], delay=DELAY, loss=params["p"])
    packets = _budget(star.receivers, 2 / reference.values["value"], effort, 40)
    sent = mean_of([float(count) for count in transmissions(star, packets, key_of(1, reference.id) % 2**32)])
    return {"value": Measured(1.0 / sent.value, sent.error / sent.value**2)}


def _rounds(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the rounds k packets took: the transmissions of the most repeated of them."""
    params = reference.params
    k, star = params["k"], StarTestbed(params["R"], delay=DELAY, loss=params["p"])
    packets = min(2000, int(DELIVERIES / (star.receivers * 20 * k))) * k
    counts = transmissions(star, max(int(effort * packets) // k, 20) * k, key_of(1, reference.id) % 2**32)
    return {"value": mean_of([float(max(counts[at : at + k])) for at in range(0, len(counts), k)])}


# -- sender- and receiver-initiated ------------------------------------------------------------------------------------


def _sessions(reference: Reference, name: str, effort: float) -> Iterable[tuple[SessionOutcome, int]]:
    """Yield (outcome, number of packets) of independent sessions of a protocol."""
    receivers, loss = reference.params["R"], reference.params["p"]
    # Simulating an ACK costs more than one delivery of a multicast packet.
    each = 20.0 if name == "a" else 6.0
    batches, least = (FEW, 20) if receivers > MANY else (BATCHES, 60)
    packets = _budget(receivers, each * batches, effort, least)
    for batch in range(batches):
        seed = key_of(1, reference.id, name, batch) % 2**32
        size = packets * SEGMENT
        yield (
            run_session(StarTestbed(receivers, delay=DELAY, loss=loss), name, SETTINGS[name], (0.0, size), seed=seed),
            packets + 1,
        )


Reading = Callable[[SessionOutcome, int], float]
"""Function that computes a value from the outcome of a session and its number of packets."""


def _read(reference: Reference, effort: float, readings: Mapping[str, tuple[str, Reading]]) -> dict[str, Measured]:
    """Return the mean of each reading over sessions; readings are (protocol, function) by name."""
    found: dict[str, list[float]] = {name: [] for name in readings}
    for protocol in dict.fromkeys(protocol for protocol, _ in readings.values()):
        for outcome, packets in _sessions(reference, protocol, effort):
            assert outcome.complete == reference.params["R"], "a receiver misses something"
            for name, (owner, reading) in readings.items():
                if owner == protocol:
                    found[name].append(reading(outcome, packets))
    return {name: mean_of(samples) for name, samples in found.items()}


def _counts(reference: Reference, effort: float) -> Mapping[str, Measured]:
    return _read(
        reference,
        effort,
        {
            "ACK_A": ("a", lambda outcome, packets: outcome.receivers["acks_sent"] / packets),
            "NAK_N1": ("n1", lambda outcome, packets: outcome.receivers["nacks_sent"] / packets),
            "NAK_N2": ("n2", lambda outcome, packets: outcome.receivers["nacks_sent"] / packets),
        },
    )


def _sender_time(costs: Mapping[str, float]) -> Reading:
    def reading(outcome: SessionOutcome, packets: int) -> float:
        did = outcome.sender
        sent = did["data_sent"] + did["repairs_sent"]
        feedback = did.get("acks_received", 0) * costs["Xa"] + did.get("nacks_received", 0) * costs["Xn"]
        return (sent * costs["Xp"] + did.get("timeouts", 0) * costs["Xt"] + feedback) / packets

    return reading


def _receiver_time(costs: Mapping[str, float], receivers: int) -> Reading:
    def reading(outcome: SessionOutcome, packets: int) -> float:
        did = outcome.receivers
        sent = did.get("acks_sent", 0) * costs["Ya"] + did.get("nacks_sent", 0) * costs["Yn"]
        received = did["data_received"] * costs["Yp"] + did.get("nacks_heard", 0) * costs["Xn"]
        return (sent + received + did.get("timeouts", 0) * costs["Yt"]) / packets / receivers

    return reading


def _times(reference: Reference, effort: float) -> Mapping[str, Measured]:
    costs, receivers = reference.params["costs"], reference.params["R"]
    readings: dict[str, tuple[str, Reading]] = {}
    for name in ("A", "N1", "N2"):
        readings[f"{name}.sender_time"] = (name.lower(), _sender_time(costs))
        readings[f"{name}.receiver_time"] = (name.lower(), _receiver_time(costs, receivers))
    found = _read(reference, effort, readings)
    for name in ("A", "N1", "N2"):
        slower = max(found[f"{name}.sender_time"], found[f"{name}.receiver_time"], key=lambda time: time.value)
        found[f"{name}.throughput"] = Measured(1.0 / slower.value, slower.error / slower.value**2)
    for over, under in (("N1", "A"), ("N2", "A"), ("N2", "N1")):
        above, below = found[f"{over}.throughput"], found[f"{under}.throughput"]
        ratio = above.value / below.value
        error = ratio * ((above.error / above.value) ** 2 + (below.error / below.value) ** 2) ** 0.5
        found[f"ratio_{over}_over_{under}"] = Measured(ratio, error)
    return {name: measured for name, measured in found.items() if name in reference.values}


FAMILIES: Families = {
    "arq_nofec": _repetition,
    "arq_shared_loss": _repetition,
    "arq_rounds": _rounds,
    "goodput_arq": _goodput,
    "tkp_counts": _counts,
    "tkp_throughput": _times,
}

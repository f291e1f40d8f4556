"""Repetition with erasure coding by NORM: packets per source packet (Nonnenmacher, Biersack, Towsley 1998).

Each block is an object of its own, sent after the repairs of the previous one. Feedback is never lost, and delays are short
compared with the back-off. 255 - k parity symbols approximate unlimited parity.
"""

from collections.abc import Mapping

from experiments.validation.references import Families, Measured, Reference, mean_of, ratio_of
from experiments.validation.testbed import StarTestbed, run_session
from protocols.machine import Message
from protocols.norm.messages import Data
from protocols.norm.quantise import rtt_code, rtt_seconds
from protocols.rng import key_of
from topologies.losses import LinkLoss

__all__ = ["FAMILIES", "blocks"]

SEGMENT = 100
GRTT = rtt_seconds(rtt_code(0.01))
DELAY = 1e-6
BLOCKS = 2000
DELIVERIES = 4e7
"""Budget of packet deliveries at full effort; large groups send fewer blocks, with a larger standard error."""
TRIALS = 100_000


def blocks(star: StarTestbed, k: int, parity: int, proactive: int, count: int, seed: int) -> list[list[int]]:
    """Return for each of `count` blocks of k the symbols sent, in order, until every receiver had the block."""
    settings = {
        "rate": 1e9,
        "segment": SEGMENT,
        "block": k,
        "parity": parity,
        "auto_parity": proactive,
        "grtt": GRTT,
        "probing": "none",
        "gsize": star.receivers,
        "robust": 6,
    }
    jobs = [(60 * GRTT * block, k * SEGMENT) for block in range(count)]
    outcome = run_session(star, "norm", settings, *jobs, seed=seed, wanted=_is_content)
    assert outcome.complete == star.receivers, "a receiver misses something"
    sent: list[list[int]] = [[] for _ in range(count)]
    for _, message in outcome.received:
        if isinstance(message, Data):
            sent[message.object_id].append(message.symbol)
    return sent


def _is_content(message: Message) -> bool:
    return isinstance(message, Data)


def _count(receivers: int, k: int, each: float, effort: float) -> int:
    return max(int(effort * min(BLOCKS, DELIVERIES / (receivers * (k * each + 10)))), 100 if receivers <= 100 else 10)


def _integrated(reference: Reference, effort: float) -> Mapping[str, Measured]:
    params = reference.params
    k, receivers = params["k"], params["R"]
    loss = params["p"] if "p" in params else params["p_tail"]
    star = StarTestbed(receivers, delay=DELAY, loss=loss, trunk_loss=params.get("p_shared", 0.0))
    count = _count(receivers, k, reference.values["value"], effort)
    sent = blocks(star, k, 255 - k, params.get("a", 0), count, key_of(1, reference.id) % 2**32)
    return {"value": mean_of([len(symbols) / k for symbols in sent])}


def _finite(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure with n - k parity symbols: their cost, and whether any symbol had to be sent a second time."""
    params = reference.params
    k, parity, receivers = params["k"], params["n"] - params["k"], params["R"]
    star = StarTestbed(receivers, delay=DELAY, loss=params["p"])
    sent = blocks(star, k, parity, 0, _count(receivers, k, 1.5, effort), key_of(1, reference.id) % 2**32)
    costs = [len(set(symbols)) / k for symbols in sent]
    failed = sum(len(symbols) > len(set(symbols)) for symbols in sent)
    return {"first_pass_cost": mean_of(costs), "p_any_fail": ratio_of(failed, len(sent))}


def _residual(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure loss after decoding on one link: with fewer than k of n packets received, lost source packets stay lost."""
    k, n, p = reference.params["k"], reference.params["n"], reference.params["p"]
    link, trials = LinkLoss(key_of(1, reference.id), p), max(int(TRIALS * effort), 1000)
    failed, residues = 0, []
    for trial in range(trials):
        lost = [link.lost(trial << 8 | symbol) for symbol in range(n)]
        bad = sum(lost) > n - k
        failed += bad
        residues.append(sum(lost[:k]) / k if bad else 0.0)
    residue = mean_of(residues)
    if not failed:
        residue = Measured(0.0, 1.0 / trials)
    return {"q": residue, "p_block_fail": ratio_of(failed, trials)}


FAMILIES: Families = {
    "fec_integrated_inf": _integrated,
    "fec_integrated_proactive": _integrated,
    "fec_shared_loss": _integrated,
    "fec_finite_first_block": _finite,
    "fec_residual": _residual,
}

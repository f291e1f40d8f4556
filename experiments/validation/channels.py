"""Lossy links: the Gilbert-Elliott chain, its effect on blocks of a code, and loss of fragmented datagrams.

Many independent sibling links are drawn together, as those of a counted group are; a jackknife over links gives standard errors
that account for correlation within a link.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from experiments.validation.references import Families, Measured, Reference, ratio_of
from protocols.rng import key_of
from topologies.channels import Bernoulli, Channel, GilbertElliott
from topologies.ethernet import frames_of
from topologies.line import Line
from topologies.spec import LinkSpec

__all__ = ["FAMILIES", "fates"]

LINKS, PACKETS = 64, 32_000
BLOCK_LINKS, BLOCKS = 256, 1000
DATAGRAMS = 100_000
LAGS = (1, 2, 5, 10)
MTU = 1500
Floats: TypeAlias = npt.NDArray[np.float64]


def fates(channel: Channel, key: int, links: int, packets: int) -> npt.NDArray[np.bool_]:
    """Return losses as booleans of shape (links, packets); packets are first transmissions in order."""
    lost = np.zeros((links, packets), np.bool_)
    sampler = channel.group(key, links)
    assert sampler is not None
    for packet in range(packets):
        losers = sampler.losers(packet)
        if losers:
            lost[losers, packet] = True
    return lost


def _jackknife(sums: Floats, function: Callable[[Floats], float]) -> Measured:
    """Return a function of sums over links, with its jackknife standard error."""
    total, count = sums.sum(axis=0), len(sums)
    without = np.array([function(total - part) for part in sums])
    return Measured(function(total), float(np.sqrt((count - 1) * without.var())))


def _chain(reference: Reference) -> GilbertElliott:
    return GilbertElliott(**{name: reference.params[name] for name in ("p", "r", "loss_bad", "loss_good")})


def _statistics(reference: Reference, effort: float) -> Mapping[str, Measured]:
    lost = fates(_chain(reference), key_of(1, reference.id), LINKS, int(max(PACKETS * effort, 2000)))
    before, after = lost[:, :-1], lost[:, 1:]
    pairs = [(before & ~after).sum(axis=1), (~before & after).sum(axis=1), before.sum(axis=1), (~before).sum(axis=1)]
    sums = np.stack(pairs, axis=1).astype(np.float64)
    found = {
        "loss": _jackknife(np.stack([lost.sum(axis=1), np.full(len(lost), lost.shape[1])], axis=1), lambda s: s[0] / s[1]),
        "mean_burst": _jackknife(sums, lambda s: s[2] / s[0]),
        "mean_gap": _jackknife(sums, lambda s: s[3] / s[1]),
    }
    for lag in LAGS:
        parts = [lost[:, :-lag] & lost[:, lag:], lost[:, :-lag], lost[:, lag:], np.ones_like(lost[:, lag:])]
        products = np.stack([part.sum(axis=1) for part in parts], axis=1).astype(np.float64)
        found[f"acf.{lag}"] = _jackknife(products, _correlation)
    return found


def _correlation(sums: Floats) -> float:
    both, first, second = sums[:3] / sums[3]
    rate = (first + second) / 2
    return float((both - first * second) / (rate * (1 - rate)))


def _blocks(reference: Reference, effort: float) -> Mapping[str, Measured]:
    n, parity = reference.params["n"], reference.params["parity"]
    lost = fates(_chain(reference), key_of(1, reference.id), BLOCK_LINKS, n * int(max(BLOCKS * effort, 20)))
    counts = lost.reshape(len(lost), -1, n).sum(axis=2).astype(np.float64)
    parts = [(counts > parity).sum(axis=1), counts.sum(axis=1), (counts**2).sum(axis=1), np.full(len(counts), counts.shape[1])]
    sums = np.stack(parts, axis=1).astype(np.float64)
    return {
        "p_fail": _jackknife(sums, lambda s: s[0] / s[3]),
        "mean_losses": _jackknife(sums, lambda s: s[1] / s[3]),
        "var_losses": _jackknife(sums, lambda s: s[2] / s[3] - (s[1] / s[3]) ** 2),
    }


def _fragments(reference: Reference, effort: float) -> Mapping[str, Measured]:
    payload, loss = reference.params["payload"], reference.params["frame_loss"]
    assert frames_of(payload, MTU) == reference.params["frames"]
    line = Line(LinkSpec(loss=Bernoulli(p=loss), mtu=MTU), key_of(1, reference.id))
    count = int(max(DATAGRAMS * effort, 1000))
    for number in range(count):
        line.offer(None, payload, number, "data", 0.001 * number)
    return {"value": ratio_of(line.lost, count)}


FAMILIES: Families = {"gilbert_elliott": _statistics, "ge_fec_block": _blocks, "fragment_loss": _fragments}

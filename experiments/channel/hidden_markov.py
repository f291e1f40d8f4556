"""Maximum likelihood estimation of the four-parameter Gilbert-Elliott chain, a hidden Markov model.

The likelihood of a record is a product of 2 x 2 matrices, one power per run of equal fates, multiplied pairwise as a tree with
numpy. The maximum is found by the Nelder-Mead simplex method on the logits of the parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ChainEstimate", "emissions", "fit_chain", "log_likelihood"]

Floats: TypeAlias = npt.NDArray[np.float64]
Runs: TypeAlias = list[int]
"""Lengths of alternating runs of passed and lost packets, beginning with passed ones; the first may be 0."""

_FAR = 12.0


@dataclass(frozen=True, slots=True)
class ChainEstimate:
    """Estimates of p, r, loss_bad, loss_good, and standard errors of their logits; None where not determined."""

    values: tuple[float, float, float, float]
    errors: tuple[float, ...] | None
    log_likelihood: float


def _unit(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -_FAR, _FAR))))


def emissions(p: float, r: float, loss_bad: float, loss_good: float) -> tuple[Floats, tuple[Floats, Floats]]:
    """Return the stationary distribution and, per fate (passed, lost), the matrix diag(P(fate | state)) @ transitions.

    States are ordered (good, bad).
    """
    moves = np.array([[1 - p, p], [r, 1 - r]])
    lost = np.array([loss_good, loss_bad])
    return np.array([r, p]) / (p + r), ((1 - lost)[:, None] * moves, lost[:, None] * moves)


def _scaled(matrices: Floats, logs: Floats) -> tuple[Floats, Floats]:
    sizes = np.maximum(matrices.max(axis=(1, 2)), 1e-300)
    return matrices / sizes[:, None, None], logs + np.log(sizes)


def _powers(matrix: Floats, exponents: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return powers of a matrix as scaled matrices and logarithms of their scales."""
    result, logs = np.tile(np.eye(2), (len(exponents), 1, 1)), np.zeros(len(exponents))
    base, base_log = _scaled(matrix[None], np.zeros(1))
    left = exponents.copy()
    while left.any():
        odd = (left & 1).astype(np.bool_)
        result[odd], logs[odd] = _scaled(result[odd] @ base[0], logs[odd] + base_log[0])
        base, base_log = _scaled(base @ base, 2 * base_log)
        left >>= 1
    return result, logs


def log_likelihood(runs: Runs, parameters: tuple[float, float, float, float]) -> float:
    """Return the log-likelihood of a record under (p, r, loss_bad, loss_good)."""
    start, matrices = emissions(*parameters)
    lengths = np.array(runs, np.int64)
    factors, logs = np.empty((len(lengths), 2, 2)), np.empty(len(lengths))
    for fate in (0, 1):
        distinct, where = np.unique(lengths[fate::2], return_inverse=True)
        powers, scales = _powers(matrices[fate], distinct)
        factors[fate::2], logs[fate::2] = powers[where], scales[where]
    while len(factors) > 1:
        if len(factors) % 2:
            factors, logs = np.concatenate([factors, np.eye(2)[None]]), np.append(logs, 0.0)
        factors, logs = _scaled(factors[::2] @ factors[1::2], logs[::2] + logs[1::2])
    return float(np.log(max((start @ factors[0]).sum(), 1e-300)) + logs[0])


def _simplex(function: Callable[[Floats], float], start: Floats, steps: int = 400, width: float = 1e-5) -> tuple[Floats, float]:
    """Minimise a function from `start` by the Nelder-Mead method with standard coefficients."""
    points = [start, *(start + step for step in 0.7 * np.eye(len(start)))]
    found = sorted(((function(point), n, point) for n, point in enumerate(points)), key=lambda item: item[:2])
    serials = count(len(found))
    for _ in range(steps):
        if found[-1][0] - found[0][0] < width:
            break
        middle = np.mean([point for _, _, point in found[:-1]], axis=0)
        worst = found[-1][2]

        def tried(reach: float, middle: Floats = middle, worst: Floats = worst) -> tuple[float, int, Floats]:
            point = middle + reach * (middle - worst)
            return function(point), next(serials), point

        best = tried(1.0)
        if best[0] < found[0][0]:
            best = min(best, tried(2.0), key=lambda item: item[0])
        elif best[0] >= found[-2][0]:
            best = min(tried(0.5 if best[0] < found[-1][0] else -0.5), best, key=lambda item: item[0])
        if best[0] < found[-1][0]:
            found[-1] = best
        else:
            corner = found[0][2]
            found = [found[0], *((function(p := corner + (point - corner) / 2), n, p) for _, n, point in found[1:])]
        found.sort(key=lambda item: item[:2])
    return found[0][2], found[0][0]


def _errors(function: Callable[[Floats], float], at: Floats) -> tuple[float, ...] | None:
    """Return standard errors from the observed information; None if it is not positive definite."""
    size, step = len(at), 0.05
    shifts = step * np.eye(size)
    curvature = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            corners = [function(at + a * shifts[i] + b * shifts[j]) * a * b for a in (1, -1) for b in (1, -1)]
            curvature[i, j] = curvature[j, i] = sum(corners) / (4 * step * step)
    try:
        np.linalg.cholesky(curvature)
    except np.linalg.LinAlgError:
        return None
    return tuple(float(variance) ** 0.5 for variance in np.diag(np.linalg.inv(curvature)))


def fit_chain(runs: Runs, p: float, r: float) -> ChainEstimate:
    """Return the maximum likelihood chain; `p` and `r` of the two-parameter chain start the search."""

    def against(logits: Floats) -> float:
        return -log_likelihood(runs, tuple(_unit(logits).tolist()))

    rate = sum(runs[1::2]) / sum(runs)
    starts = [(p, r, 0.95, rate / 50), (p / 4, r / 4, 0.5, rate / 4), (0.01, 0.1, min(0.9, 3 * rate), rate / 4)]
    values = [np.clip(np.log(np.array(s) / (1 - np.array(s))), -8, 8) for s in starts]
    logits, least = min((_simplex(against, value) for value in values), key=lambda item: item[1])
    found = _unit(logits)
    errors = _errors(against, logits)
    if found[2] < found[3]:
        # Swap the labels of the states; the chain is the same.
        found = found[[1, 0, 3, 2]]
        errors = None if errors is None else (errors[1], errors[0], errors[3], errors[2])
    return ChainEstimate((float(found[0]), float(found[1]), float(found[2]), float(found[3])), errors, -least)

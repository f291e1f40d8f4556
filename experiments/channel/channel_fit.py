"""Fit channel models to a record of losses, with 95 % confidence intervals and goodness-of-fit tests."""

from dataclasses import asdict, dataclass
from itertools import pairwise
from math import exp, inf, lgamma, log, sqrt
from typing import Any, TypeAlias

import numpy as np

from experiments.channel.hidden_markov import emissions, fit_chain
from topologies.channels import Bernoulli, GilbertElliott, Recorded

__all__ = ["Estimate", "FitReport", "ModelFit", "chi2_survival", "fit_channels", "wilson"]

Quads: TypeAlias = tuple[float, float, float, float]

_Z = 1.959963984540054
_FEWEST_RUNS = 20
_LEAST_EXPECTED = 5.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 95 % confidence interval; None where the record does not determine it."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ModelFit:
    """A fitted model; a smaller `bic` (Bayesian information criterion) is better.

    `burst_p` and `gap_p` are p-values of chi-squared tests on the lengths of loss bursts and gaps; a small one rejects the
    model. None: too few runs for a test.
    """

    model: str
    parameters: dict[str, Estimate]
    log_likelihood: float
    bic: float
    burst_p: float | None
    gap_p: float | None

    @property
    def channel(self) -> Bernoulli | GilbertElliott:
        """The channel with these parameters."""
        values: dict[str, Any] = {name: estimate.value for name, estimate in self.parameters.items()}
        return Bernoulli(p=values["p"]) if self.model == "bernoulli" else GilbertElliott(**values)


@dataclass(frozen=True, slots=True)
class FitReport:
    """Statistics of a record, and the models fitted to it."""

    packets: int
    lost: int
    bursts: int
    mean_burst: float | None
    mean_gap: float | None
    fits: tuple[ModelFit, ...]
    recorded: Recorded

    @property
    def best(self) -> ModelFit:
        """The fit with the smallest BIC."""
        return min(self.fits, key=lambda fit: fit.bic)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        head = {name: getattr(self, name) for name in ("packets", "lost", "bursts", "mean_burst", "mean_gap")}
        return head | {"best": self.best.model, "fits": [asdict(fit) for fit in self.fits]}


def wilson(hits: int, trials: int) -> Estimate:
    """Return a proportion with its Wilson score interval."""
    if not trials:
        return Estimate(0.0, None, None)
    share, z2 = hits / trials, _Z * _Z
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z * sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    # Rounding moves a bound that is exactly 0 or 1.
    low, high = middle - half if hits else 0.0, middle + half if hits < trials else 1.0
    return Estimate(share, max(0.0, low), min(1.0, high))


def chi2_survival(value: float, freedom: int) -> float:
    """Return P(chi-squared with `freedom` degrees > value): the regularised upper incomplete gamma function.

    Computed by its series, or by a continued fraction in the tail.
    """
    a, x = freedom / 2, value / 2
    if x <= 0:
        return 1.0
    front = exp(-x + a * log(x) - lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - front * total)
    b = x + 1 - a
    c, d = inf, 1 / b
    h = d
    for i in range(1, 500):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front * h


def fit_channels(fates: list[bool]) -> FitReport:
    """Fit Bernoulli, the two-parameter Gilbert chain and, with enough bursts, the four-parameter Gilbert-Elliott chain.

    `fates` are true for lost packets.
    """
    recorded = Recorded.of(fates)
    runs = list(recorded.runs)
    count, lost = len(fates), sum(fates)
    bursts, gaps = runs[1::2], [length for length in runs[::2] if length]
    fits = [_fit("bernoulli", {"p": wilson(lost, count)}, runs)]
    if lost and lost < count:
        # The last packet has no transition.
        after_good = count - lost - (not fates[-1])
        after_bad = lost - fates[-1]
        enters = len(bursts) - fates[0]
        leaves = len(gaps) - (not fates[0])
        if enters and leaves:
            p, r = wilson(enters, after_good), wilson(leaves, after_bad)
            fits.append(_fit("gilbert", {"p": p, "r": r}, runs))
            if len(bursts) >= _FEWEST_RUNS:
                fits.append(_elliott(runs, p.value, r.value))
    return FitReport(
        packets=count,
        lost=lost,
        bursts=len(bursts),
        mean_burst=lost / len(bursts) if bursts else None,
        mean_gap=(count - lost) / len(gaps) if gaps else None,
        fits=tuple(fits),
        recorded=recorded,
    )


def _elliott(runs: list[int], p: float, r: float) -> ModelFit:
    chain = fit_chain(runs, min(p, 0.99), min(r, 0.99))
    errors = chain.errors or (inf,) * 4
    names = ("p", "r", "loss_bad", "loss_good")
    estimates = {name: _on_logits(value, sd) for name, value, sd in zip(names, chain.values, errors, strict=True)}
    return _fit("gilbert-elliott", estimates, runs, chain.log_likelihood)


def _on_logits(value: float, sd: float) -> Estimate:
    """Return an estimate whose interval is symmetric on the logit scale with standard error `sd`."""
    if sd > 50:
        return Estimate(value, None, None)
    odds = value / (1 - value)
    low, high = odds * exp(-_Z * sd), odds * exp(_Z * sd)
    return Estimate(value, low / (1 + low), high / (1 + high))


def _chain_of(parameters: dict[str, Estimate]) -> Quads:
    """Return any of the models as a two-state chain (p, r, loss_bad, loss_good)."""
    value = {name: estimate.value for name, estimate in parameters.items()}
    if "r" not in value:
        return (value["p"], 1 - value["p"], 1.0, 0.0)
    return (value["p"], value["r"], value.get("loss_bad", 1.0), value.get("loss_good", 0.0))


def _fit(model: str, parameters: dict[str, Estimate], runs: list[int], likelihood: float | None = None) -> ModelFit:
    chain = _chain_of(parameters)
    if likelihood is None:
        likelihood = _seen_likelihood(runs, chain)
    # The first and the last run are censored by the ends of the record.
    whole = [length for length in runs if length]
    lost = [length for n, length in enumerate(runs) if n % 2 and 0 < n < len(runs) - 1 and not (n == 1 and runs[0] == 0)]
    passed = [length for n, length in enumerate(runs) if n % 2 == 0 and 0 < n < len(runs) - 1]
    free = len(parameters)
    each = max(1, free - 1)
    enough = len(whole) > 2 and chain[0] + chain[1] > 0
    return ModelFit(
        model=model,
        parameters=parameters,
        log_likelihood=likelihood,
        bic=free * log(sum(runs)) - 2 * likelihood,
        burst_p=_chi2(lost, 1, chain, each) if enough else None,
        gap_p=_chi2(passed, 0, chain, each) if enough else None,
    )


def _seen_likelihood(runs: list[int], chain: Quads) -> float:
    """Return the log-likelihood of a chain whose states are the observed fates."""
    p, r = chain[0], chain[1]
    sizes = {(0, 1): p, (0, 0): 1 - p, (1, 0): r, (1, 1): 1 - r}
    fate_runs = [(n & 1, length) for n, length in enumerate(runs) if length]
    seen = {(0, 0): 0, (0, 1): 0, (1, 0): 0, (1, 1): 0}
    for fate, length in fate_runs:
        seen[fate, fate] += length - 1
    for (fate, _), (after, _) in pairwise(fate_runs):
        seen[fate, after] += 1
    first = p / (p + r) if fate_runs[0][0] else r / (p + r)
    terms = [*((seen[key], sizes[key]) for key in seen), (1, first)]
    return sum(times * (log(size) if size > 0 else -inf) for times, size in terms if times)


def _chi2(lengths: list[int], fate: int, chain: Quads, free: int) -> float | None:
    """Return the chi-squared p-value of lengths of runs, in bins of at least five expected; None for too few runs."""
    if len(lengths) < _FEWEST_RUNS:
        return None
    start, matrices = emissions(*chain)
    inside, outside = matrices[fate], matrices[1 - fate]
    begins = start @ outside
    whole = float((begins @ inside).sum())
    if whole <= 0:
        return None
    # P(length > m) for m = 0, 1, ...
    state, tail = begins @ inside / whole, [1.0]
    while tail[-1] * len(lengths) > _LEAST_EXPECTED / 10 and len(tail) < 100_000:
        state = state @ inside
        tail.append(float(state.sum()))
    met = np.bincount(np.minimum(lengths, len(tail)), minlength=len(tail) + 1)
    value, bins, expected, seen = 0.0, 0, 0.0, 0
    for length in range(1, len(tail)):
        expected += (tail[length - 1] - tail[length]) * len(lengths)
        seen += int(met[length])
        if expected >= _LEAST_EXPECTED and tail[length] * len(lengths) >= _LEAST_EXPECTED:
            value, bins, expected, seen = value + (seen - expected) ** 2 / expected, bins + 1, 0.0, 0
    expected += tail[-1] * len(lengths)
    seen += int(met[len(tail)])
    if expected > 0:
        value, bins = value + (seen - expected) ** 2 / expected, bins + 1
    return chi2_survival(value, bins - 1 - min(free, bins - 2)) if bins > 2 else None

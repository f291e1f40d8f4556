"""Space-filling samples of the unit cube: Latin hypercube and Sobol sequence."""

from experiments.sweep.spec.sweep_file import Sample
from protocols.errors import UnsupportedError

__all__ = ["unit_points"]


def unit_points(sample: Sample, dimensions: int) -> list[list[float]]:
    """Draw `sample.points` points from `sample.seed`; UnsupportedError without scipy."""
    try:
        from scipy.stats import qmc
    except ImportError as error:
        raise UnsupportedError("sample: needs scipy; get it: pip install 'mcastlab[spark]'") from error
    if sample.method == "sobol":
        # A Sobol sequence is balanced at powers of two; a prefix of it still has low discrepancy.
        power = max(0, (sample.points - 1).bit_length())
        drawn = qmc.Sobol(d=dimensions, scramble=True, rng=sample.seed).random_base2(power)
    else:
        drawn = qmc.LatinHypercube(d=dimensions, rng=sample.seed).random(sample.points)
    points: list[list[float]] = drawn[: sample.points].tolist()
    return points

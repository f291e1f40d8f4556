"""Space-filling samples of the unit cube: Latin hypercube and Sobol sequence."""

from experiments.output.extras import need
from experiments.sweep.spec.sweep_file import Sample

__all__ = ["unit_points"]


def unit_points(sample: Sample, dimensions: int) -> list[list[float]]:
    """Draw `sample.points` points from `sample.seed`; UnsupportedError without scipy."""
    need("sample", "scipy")
    from scipy.stats import qmc

    if sample.method == "sobol":
        # A Sobol sequence is balanced at powers of two; a prefix of it still has low discrepancy.
        power = max(0, (sample.points - 1).bit_length())
        drawn = qmc.Sobol(d=dimensions, scramble=True, rng=sample.seed).random_base2(power)
    else:
        drawn = qmc.LatinHypercube(d=dimensions, rng=sample.seed).random(sample.points)
    points: list[list[float]] = drawn[: sample.points].tolist()
    return points

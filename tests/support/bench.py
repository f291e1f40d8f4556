"""The names of `experiments.contract.bench`, for tests."""

from experiments.contract.bench import Bench

__all__ = ["Bench"]

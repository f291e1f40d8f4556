"""The names of `experiments.contract.recorder`, for tests."""

from experiments.contract.recorder import Recorder

__all__ = ["Recorder"]

"""The names of `experiments.contract.losses`, for tests."""

from experiments.contract.losses import Crossing, Drop, any_of, everything_to, nothing, numbered, randomly

__all__ = ["Crossing", "Drop", "any_of", "everything_to", "nothing", "numbered", "randomly"]

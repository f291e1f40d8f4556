"""The names of `experiments.contract.fake_host`, for tests."""

from experiments.contract.fake_host import FakeHost

__all__ = ["FakeHost"]

"""The metrics of a run that are computed from its receivers."""

from types import SimpleNamespace
from typing import Any

import pytest

from experiments.running.result import Row
from experiments.sweep.spec.metrics import METRICS


def receiver(completed_at: float | None, visitor: bool = False) -> Row:
    return Row("r", 1, 1, completed_at is not None, "SHA-256", completed_at, None, None, None, 0, 0, visitor=visitor)


@pytest.mark.parametrize(
    ("times", "median"),
    [
        ([3.0, 1.0, 2.0], 2.0),
        ([1.0, 2.0], 1.5),
        ([1.0, 2.0, None], 2.0),
        # The second of three never had everything, whatever the first did.
        ([1.0, None, None], None),
        ([1.0, None], None),
        ([None], None),
        ([], None),
    ],
)
def test_receivers_that_never_complete_are_the_last_in_the_median_of_completion(
    times: list[float | None], median: float | None
) -> None:
    result: Any = SimpleNamespace(receivers=[receiver(at) for at in times] + [receiver(9.0, visitor=True)])
    assert METRICS["median_completed_at"].read(result) == median

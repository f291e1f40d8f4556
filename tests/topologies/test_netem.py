"""The commands of Linux for a link: each attribute is in them or reported as missing."""

from typing import Any, get_args

import pytest

from topologies.channels import Recorded
from topologies.netem import netem_of
from topologies.queues import Discipline, DropTail, TokenBucket
from topologies.spec import LinkSpec

_GIVEN: dict[type, dict[str, Any]] = {TokenBucket: {"burst": 3000}}


@pytest.mark.parametrize("model", get_args(Discipline), ids=lambda model: model.__name__)
def test_every_queue_discipline_has_a_qdisc_of_its_own(model: Any) -> None:
    found = netem_of(LinkSpec(rate=1e6, discipline=model(**_GIVEN.get(model, {}))), "eth0")
    assert any("parent 1: handle 10:" in command for command in found.commands)


def test_a_queue_discipline_without_a_translation_is_an_error_and_not_left_out() -> None:
    unknown: Any = object()
    with pytest.raises(AssertionError):
        netem_of(LinkSpec(discipline=unknown), "eth0")


@pytest.mark.parametrize("queue", [DropTail(packets=5, bytes=9000), TokenBucket(burst=3000, packets=5, bytes=9000)])
def test_a_second_limit_of_a_queue_is_told_as_missing(queue: Discipline) -> None:
    found = netem_of(LinkSpec(rate=1e6, discipline=queue), "eth0")
    assert found.missing == ["packets 5: the kernel's queue has one limit, here that of bytes"]
    assert "limit 9000" in found.commands[-1]


@pytest.mark.parametrize(
    ("record", "model"),
    [
        # Repeated, the last loss and the first are one burst.
        ("101", "100% 50%"),
        ("10101", "100% 66.6667%"),
        ("00110", "33.3333% 50%"),
        ("0100110000", "28.5714% 66.6667%"),
    ],
)
def test_a_recording_is_replaced_by_the_gilbert_model_with_its_loss_rate_and_mean_burst(record: str, model: str) -> None:
    found = netem_of(LinkSpec(loss=Recorded.of([digit == "1" for digit in record])), "eth0")
    assert found.commands == [f"tc qdisc add dev eth0 root handle 1: netem loss gemodel {model} 100% 0%"]


def test_runs_of_no_packets_do_not_divide_a_burst() -> None:
    divided, whole = (netem_of(LinkSpec(loss=Recorded(runs=runs)), "eth0") for runs in ((1, 1, 0, 1, 0, 1), (1, 3)))
    assert divided.commands == whole.commands

"""The commands of Linux for a link: each attribute is in them or reported as missing."""

from typing import Any, get_args

import pytest

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

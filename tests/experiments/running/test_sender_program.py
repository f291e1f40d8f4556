"""A sender's program finishes whatever becomes of its objects."""

from typing import Any, cast

import pytest

from experiments.running.program import Job, Node, SenderProgram
from protocols.events import Event, FlushCompleted, ObjectAborted, ObjectPurged, ObjectSent
from protocols.hosting import PortsHost
from protocols.machine import Content, Group
from protocols.registry import protocol
from tests.protocols.norm.scenes import quick


class Host:
    """A host that numbers objects and sends nothing."""

    now = 0.0

    def __init__(self) -> None:
        self.submitted = 0

    def run(self, machine: object, on_event: object, accept: object = None) -> None:
        """Do nothing."""

    def notify(self, event: object) -> None:
        """Do nothing."""

    def call(self, verb: object, *args: object) -> int:
        """Number an object."""
        self.submitted += 1
        return self.submitted - 1


def program(objects: int, *events: Event) -> SenderProgram:
    """Return a program of so many objects after these events."""
    host, jobs = Host(), [Job(0.0, Content(cast(Any, None)))] * objects
    made = SenderProgram(Node(protocol("norm"), quick(), 1, Group("239.1.1.1:5001")), jobs)
    host.rng = cast(Any, None)  # type: ignore[attr-defined]
    made.start(cast(PortsHost, host))
    for event in events:
        made._on_event(event)
    return made


FAILED = ObjectAborted(1, 0, "source: broken disk")


@pytest.mark.parametrize(
    "events",
    [
        [FAILED, ObjectSent(1)],
        [ObjectSent(0), ObjectSent(1), FAILED],
        [ObjectSent(0), FAILED, ObjectSent(1)],
        [ObjectSent(0), ObjectPurged(0), ObjectSent(1)],
    ],
)
def test_a_program_finishes_with_the_flush_that_follows_its_last_object(events: list[Event]) -> None:
    assert not program(2, *events).finished()
    assert program(2, *events, FlushCompleted(1)).finished()


@pytest.mark.parametrize("events", [[ObjectSent(0)], [FAILED], [ObjectSent(0), FAILED]])
def test_a_program_does_not_finish_with_an_earlier_flush(events: list[Event]) -> None:
    assert not program(2, *events, FlushCompleted(0)).finished()


def test_another_object_may_have_the_number_of_one_that_left_the_window() -> None:
    assert not program(2, ObjectSent(0), ObjectPurged(0), FlushCompleted(0)).finished()
    assert program(2, ObjectSent(0), ObjectPurged(0), FAILED, FlushCompleted(0)).finished()

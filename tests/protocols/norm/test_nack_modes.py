"""Nacking modes and the repair boundary: what a receiver requests where that is not everything at once."""

from dataclasses import replace
from typing import Any

import pytest

from experiments.contract.content import pattern
from protocols.errors import UsageError
from protocols.events import ObjectsAborted
from protocols.norm.messages import (
    FLAG_REPAIR,
    FLAG_UNRELIABLE,
)
from protocols.norm.requests import (
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
)
from tests.protocols.norm.scenes import MessageBuilder, ReceiverHarness, symbols

CONTENT = pattern(1600)
"""Two blocks of eight segments."""


def lossy(info: bytes | None = b"name", *, joined: bool = True, **settings: Any) -> tuple[MessageBuilder, ReceiverHarness]:
    """Return a receiver that has joined at object 0, complete, and the builder of what follows."""
    made, receiver = MessageBuilder(CONTENT, info=info), ReceiverHarness(**settings)
    if joined:
        receiver.receive(*([made.info()] if info is not None else []), *made.whole())
    return made, receiver


def levels(receiver: ReceiverHarness) -> list[int]:
    """Return the levels of all that was requested, in order."""
    return [request.level for nack in receiver.nacks for request in nack.requests]


def lose_object_1(made: MessageBuilder, receiver: ReceiverHarness) -> None:
    """Deliver object 1 without its NORM_INFO and without two symbols, and the end."""
    made.info(1)
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1, without=(5,)), made.flush(1))


def lose_object_2(made: MessageBuilder, receiver: ReceiverHarness) -> None:
    """Deliver nothing of object 2, but object 3."""
    made.info(2)
    made.whole(2)
    receiver.receive(made.info(3), *made.whole(3), made.flush(3))


def test_normally_information_symbols_and_whole_objects_are_requested() -> None:
    made, receiver = lossy()
    lose_object_1(made, receiver)
    lose_object_2(made, receiver)
    receiver.run_until(1.0)
    assert levels(receiver)[:3] == [LEVEL_INFO, LEVEL_SEGMENT, LEVEL_OBJECT]


def test_without_nacking_nothing_is_requested_and_repairs_for_others_are_taken() -> None:
    made, receiver = lossy(nacking="none")
    lose_object_1(made, receiver)
    lose_object_2(made, receiver)
    receiver.run_until(30.0)
    assert not receiver.nacks
    assert receiver.received() == [0, 3]
    receiver.receive(made.info(1, FLAG_REPAIR), made.data(0, 8, 1, FLAG_REPAIR), made.data(1, 8, 1, FLAG_REPAIR))
    assert receiver.received() == [0, 3, 1]


def test_with_information_only_no_content_is_requested() -> None:
    made, receiver = lossy(nacking="info")
    lose_object_1(made, receiver)
    lose_object_2(made, receiver)
    receiver.run_until(1.0)
    assert set(levels(receiver)) == {LEVEL_INFO}
    (first, *_) = receiver.requested()
    assert first.has_info(1)
    assert first.has_info(2)
    assert not first.objects


def test_an_object_without_information_is_not_requested_with_information_only() -> None:
    made, receiver = lossy(None, nacking="info")
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1), made.flush(1))
    receiver.run_until(1.0)
    assert not receiver.nacks


def test_the_mode_of_an_object_comes_before_that_of_its_sender() -> None:
    made, receiver = lossy(None)
    receiver.host.call(receiver.machine.set_nacking, "none", 1, None)
    receiver.host.call(receiver.machine.set_nacking, "normal", 1, 2)
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1))
    receiver.receive(*made.block(0, 2, without=(3,)), *made.block(1, 2), made.flush(2))
    receiver.run_until(0.5)
    requested = receiver.requested()
    assert requested
    assert all(symbols(each, 2, 0) == [8] and not symbols(each, 1, 0) for each in requested)


def test_a_mode_without_a_sender_is_that_of_senders_heard_from_now_on() -> None:
    made, receiver = lossy(None)
    receiver.host.call(receiver.machine.set_nacking, "none", None, None)
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1), made.flush(1))
    other = MessageBuilder(CONTENT, node=2)
    receiver.receive(*other.block(0, without=(2,)), *other.block(1), other.flush(), source="other")
    receiver.run_until(0.5)
    assert {nack.sender_id for nack in receiver.nacks} == {1}


def test_content_is_requested_as_soon_as_the_mode_allows_it() -> None:
    made, receiver = lossy(None, nacking="none")
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1), made.flush(1))
    receiver.run_until(0.5)
    assert not receiver.nacks
    receiver.host.call(receiver.machine.set_nacking, "normal", 1, 1)
    receiver.run_until(1.0)
    assert symbols(receiver.requested()[0], 1, 0) == [8]


def test_a_mode_ends_with_its_object_and_with_the_instance_of_the_sender() -> None:
    made, receiver = lossy(None)
    receiver.host.call(receiver.machine.set_nacking, "none", 1, 1)
    receiver.receive(*made.whole(1))
    again = MessageBuilder(CONTENT, instance=2)
    receiver.receive(*again.whole(), *again.block(0, 1, without=(2,)), *again.block(1, 1), again.flush(1))
    receiver.run_until(0.5)
    assert receiver.nacks


def test_with_the_object_as_boundary_losses_are_looked_for_behind_each_object_only() -> None:
    made, receiver = lossy(None, repair_boundary="object")
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1)[:7])
    receiver.run_until(0.5)
    assert not receiver.nacks
    receiver.receive(made.block(1, 1)[7], *made.block(0, 2)[:1])
    receiver.run_until(1.0)
    assert symbols(receiver.requested()[0], 1, 0) == [8]


def test_with_the_object_as_boundary_a_flush_and_a_silent_sender_are_boundaries_as_well() -> None:
    made, receiver = lossy(None, repair_boundary="object")
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1), made.flush(1))
    receiver.run_until(0.5)
    assert symbols(receiver.requested()[0], 1, 0) == [8]
    made, receiver = lossy(None, repair_boundary="object")
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1)[:3])
    receiver.run_until(5.0)
    assert symbols(receiver.requested()[0], 1, 0) == [8]


def test_the_boundary_can_be_set_for_one_sender() -> None:
    made, receiver = lossy(None, repair_boundary="object")
    receiver.receive(*made.block(0, 1, without=(2,)), *made.block(1, 1)[:3])
    receiver.host.call(receiver.machine.set_repair_boundary, "block", 1)
    receiver.run_until(0.5)
    assert symbols(receiver.requested()[0], 1, 0) == [8]


def test_wrong_modes_and_unknown_senders_are_refused() -> None:
    _, receiver = lossy()
    machine, call = receiver.machine, receiver.host.call
    with pytest.raises(UsageError, match="nacking: 'some' is not allowed; one of normal, info, none"):
        call(machine.set_nacking, "some", None, None)
    with pytest.raises(UsageError, match="repair boundary: 'file' is not allowed; one of block, object"):
        call(machine.set_repair_boundary, "file", None)
    with pytest.raises(UsageError, match="sender 5 has not been heard"):
        call(machine.set_nacking, "none", 5, None)


def test_a_late_receiver_of_all_objects_requests_those_before_and_forgets_what_never_was() -> None:
    made, receiver = lossy(None, joined=False, join="all", window=16)
    made.sequence = 1000
    receiver.receive(made.data(1, 3, 5, FLAG_REPAIR), made.flush(5))
    receiver.run_until(1.0)
    requested = receiver.requested()[0]
    assert all(requested.has_object((5 - step) & 0xFFFF) for step in range(1, 16))
    # The sender has nothing before object 3.
    receiver.receive(made.squelch(3))
    assert not receiver.events_of(ObjectsAborted)
    assert not receiver.aborted()
    for number in (3, 4, 5):
        receiver.receive(*(made.data(block, symbol, number, FLAG_REPAIR) for block in (0, 1) for symbol in range(8)))
    assert receiver.received() == [3, 4, 5]


def test_a_late_receiver_joins_at_a_flush_as_well_and_a_new_sender_at_its_first_object() -> None:
    made, receiver = lossy(None, joined=False, join="all", window=4)
    made.sequence = 1000
    receiver.receive(made.flush(5))
    receiver.run_until(1.0)
    assert all(receiver.requested()[0].has_object(number) for number in (2, 3, 4, 5))
    fresh, receiver = lossy(None, joined=False, join="all")
    receiver.receive(*fresh.block(0)[3:], fresh.flush())
    receiver.run_until(1.0)
    assert not receiver.requested()[0].objects


def test_nothing_is_requested_of_an_object_that_is_marked_as_unreliable() -> None:
    made, receiver = lossy(None)
    receiver.receive(*[replace(data, flags=data.flags | FLAG_UNRELIABLE) for data in made.whole(1) if data.symbol != 3])
    receiver.receive(made.flush(1))
    receiver.run_until(20.0)
    assert not receiver.nacks
    assert receiver.received() == [0]
    receiver.receive(*made.block(0, 2, without=(3,)), *made.block(1, 2), made.flush(2))
    receiver.run_until(40.0)
    assert {item.object_id for nack in receiver.nacks for request in nack.requests for item in request.items} == {2}


def test_the_mode_of_an_object_does_not_hold_for_a_later_one_with_its_id() -> None:
    made, receiver = lossy(None)
    receiver.machine.set_nacking("none", 1, 1, receiver.now)
    receiver.receive(*made.whole(1))
    for key in (0x5000, 0xA000, 0):
        receiver.receive(*made.whole(key))
    receiver.receive(*made.block(0, 1, without=(3,)), *made.block(1, 1))
    receiver.run_until(0.5)
    assert {item for nack in receiver.nacks for request in nack.requests for item in request.items} >= {Item(5, 1, 0, 8, 8)}

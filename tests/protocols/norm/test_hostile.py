"""No message costs more than its bytes allow, nor more where more is known.

Costs are counted in lines of Python that are executed, which do not depend on the machine.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from benchmarks.fuzz import RENEWED, Fuzzer, report
from benchmarks.hostile import GROUP, KINDS, NACKS, ORIGIN, SENDER, Known, handle, receiver, sender
from protocols.machine import Machine
from protocols.norm.messages import Ack, Command, Data, Info, Nack, NormMessage
from protocols.norm.repair_requests import MOST_MERGED, MOST_REQUESTED, RequestedRepairs
from protocols.norm.requests import Item, Request
from protocols.norm.tx_object import MOST_RANGES
from protocols.norm.wire.codec import NormCodec
from tests.protocols.norm.scenes import items, ranges
from tests.support.norm_strategies import messages

LITTLE, MUCH = Known(1_000_000, 4, 2), Known(1_000_000_000, 4, 300)
LINES_PER_KILOBYTE = 16_000
"""A line takes some 50 ns, so this is less than what is allowed."""
MAKE: dict[str, Callable[[Known], Machine]] = {"sender": sender, "receiver": receiver}


def lines(call: Callable[[], object]) -> int:
    """How many lines of Python a call executes."""
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def costs(role: str, messages: list[NormMessage], known: Known) -> list[float]:
    """The lines per kilobyte that a machine executes for each message; a part of a kilobyte counts as one."""
    machine, codec = MAKE[role](known), NormCodec()
    # A codec of its own for each: one that has seen the FTI of a sender encodes no other kind of symbol for it.
    packets = [NormCodec().encode(message) for message in messages]
    return [lines(partial(handle, machine, codec, packet, 1e-3)) / max(len(packet) / 1000, 1.0) for packet in packets]


CASES = [(role, kind, 44) for role, kinds in KINDS.items() for kind in kinds]
# The others have one size.
CASES += [(role, kind, 8000) for role, kind, _ in CASES if kind in {*NACKS, "SQUELCH"}]


@pytest.mark.parametrize(("role", "kind", "size"), CASES)
def test_a_crafted_message_costs_little_whatever_is_known(role: str, kind: str, size: int) -> None:
    messages = list(islice(KINDS[role][kind](size), 3))
    little, much = costs(role, messages, LITTLE), costs(role, messages, MUCH)
    assert max(little + much) < LINES_PER_KILOBYTE
    assert sum(much) < 3 * sum(little) + 1500, "it may find more to repair, but looks at no more"


def test_what_was_requested_before_does_not_slow_down_the_next_request() -> None:
    machine, codec = sender(MUCH), NormCodec()
    found = []
    for nack in islice(KINDS["sender"]["NACK every other block"](8000), 20):
        packet = codec.encode(nack)
        found.append(lines(partial(handle, machine, codec, packet, 1e-3)))
    assert found[-1] < 1.5 * found[0]


def test_overhearing_many_requests_does_not_slow_down_the_next() -> None:
    machine, codec = receiver(MUCH), NormCodec()
    found = []
    for nack in islice(KINDS["receiver"]["NACK absent objects"](1000), 60):
        packet = codec.encode(nack)
        found.append(lines(partial(handle, machine, codec, packet, 1e-3)))
    assert max(found[40:]) < 2 * max(found[:3])


LEVELS = st.sampled_from([1, 2, 4, 8, 5, 15])
ROWS = st.lists(st.tuples(st.sampled_from([0, 1, 3, 40_000]), st.integers(0, (1 << 24) - 1), st.integers(0, 255)), max_size=40)
REQUESTS = st.lists(st.tuples(st.sampled_from([1, 2, 3]), LEVELS, ROWS), max_size=12)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(REQUESTS)
def test_no_nack_is_found_that_costs_more(rows: list[tuple[int, int, list[tuple[int, int, int]]]]) -> None:
    requests = [
        Request(form, level, tuple(Item(5, *row) for row in (named[: len(named) // 2 * 2] if form == 2 else named)))
        for form, level, named in rows
    ]
    nack = Nack(7, 0, SENDER, 1, 0, 0, tuple(requests))
    for role in MAKE:
        assert costs(role, [nack], MUCH)[0] < LINES_PER_KILOBYTE


def aimed(message: NormMessage) -> NormMessage:
    """The message as one from or to the sender that the machines know."""
    if isinstance(message, (Nack, Ack)):
        return replace(message, sender_id=SENDER, instance_id=1)
    return replace(message, origin=ORIGIN) if isinstance(message, (Data, Info, Command)) else message


@settings(max_examples=20, deadline=None, derandomize=True, phases=[Phase.generate])
@given(st.lists(messages().map(aimed), min_size=1, max_size=8))
def test_no_sequence_of_messages_is_found_that_costs_more(found: list[NormMessage]) -> None:
    for role in MAKE:
        assert max(costs(role, found, MUCH)) < LINES_PER_KILOBYTE


# -- fuzzing -----------------------------------------------------------------------------------------------------------


def test_changed_packets_raise_nothing_in_codec_and_machines() -> None:
    fuzzer = Fuzzer(5)
    fuzzer.run(6000)
    counts = report(fuzzer)
    assert counts["decoded"] + counts["refused"] == 6000
    assert min(counts["decoded"], counts["refused"]) > 1000
    fuzzer.run(RENEWED)
    heard = report(fuzzer)["machines"]
    assert (
        min(heard[name] for name in ("nacks_received", "repairs_sent", "nacks_sent", "data_received", "objects_received")) > 10
    )


def test_a_packet_that_raises_is_named() -> None:
    fuzzer = Fuzzer(6)
    fuzzer.run(1)
    fuzzer._machines[0] = None  # type: ignore[call-overload]
    with pytest.raises(AttributeError) as caught:
        fuzzer.run(100)
    assert "packet" in caught.value.__notes__[0]


# -- bounds of what is kept ----------------------------------------------------------------------------------------------


def test_a_nack_uses_no_more_memory_than_a_bound_however_wide_its_masks_are() -> None:
    wide = Request(1, 1, tuple(Item(129, 0, block, 0xFFFF) for block in range(4000)))
    found = RequestedRepairs((wide,), 129)
    assert len(found.units()) <= MOST_REQUESTED // 64


def test_requests_overheard_are_remembered_up_to_a_bound() -> None:
    known = RequestedRepairs()
    for start in range(0, 3 * MOST_MERGED, 500):
        known = known.merged(RequestedRepairs((items(*((0, start + n, 1) for n in range(500))),), 5))
    assert MOST_MERGED - 500 < len(known.units()) <= MOST_MERGED


def test_separate_ranges_of_blocks_are_kept_up_to_a_bound() -> None:
    machine = sender(Known(1_500_000_000, 1, 1))
    item = next(iter(machine._window.objects.values()))
    for start in range(0, 15_000, 500):
        rows = [(0, block) for number in range(start, start + 500, 2) for block in (number, number)]
        machine.receive(Nack(7, 0, SENDER, 1, 0, 0, (ranges(*rows, level=2),)), GROUP, GROUP, 0.0)
    assert len(item.wanted_blocks) <= MOST_RANGES
    assert len(item._renewed) <= MOST_RANGES

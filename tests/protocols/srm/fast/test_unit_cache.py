"""The caches of a lockstep group, whose members share what they received together."""

from protocols.arq.fast.messages import FastData
from protocols.arq.messages import Nack, identity_of
from protocols.srm.fast.unit_cache import FastUnitCache, share_units


def data(unit: int) -> FastData:
    """Return the DATA of a unit in the middle of an object without bytes."""
    return FastData(1, 1, 5, unit, 3, 140_000, 1400, True, False, None, 1400, identity_of(1, 5, unit))


def test_the_units_of_a_run_are_those_that_would_have_been_received_one_by_one() -> None:
    together, alone = FastUnitCache(100), FastUnitCache(100)
    run, single = share_units([together]), share_units([alone])
    run.add(data(1))
    run.add_run(data(1), 2, 3)
    for unit in range(1, 5):
        single.add(data(unit))
    together.advance(run.end)
    alone.advance(single.end)
    for unit in range(1, 5):
        identity = identity_of(1, 5, unit)
        assert together.get(identity) == alone.get(identity) == data(unit)
    assert together.get(identity_of(1, 5, 5)) is None


def test_units_of_a_run_that_no_cache_holds_are_forgotten() -> None:
    cache = FastUnitCache(4)
    units = share_units([cache])
    units.add(data(1))
    units.add_run(data(1), 2, 9)
    cache.advance(units.end)
    units.trim()
    assert (units.start, units.end) == (6, 10)
    assert units.find(identity_of(1, 5, 6)) == -1
    assert [cache.get(identity_of(1, 5, unit)) for unit in range(5, 12)] == [None, None, *map(data, range(7, 11)), None]


def test_a_request_names_the_unit_of_its_source_instance_and_object_only() -> None:
    cache = FastUnitCache(100)
    units = share_units([cache])
    units.add(data(1))
    units.add_run(data(1), 2, 3)
    assert units.number_of(Nack(1, 1, 5, 3, 9)) == 2
    of_another_instance, of_another_object, unsent = Nack(1, 2, 5, 3, 9), Nack(1, 1, 5 + 0x10000, 3, 9), Nack(1, 1, 5, 8, 9)
    assert [units.number_of(each) for each in (of_another_instance, of_another_object, unsent)] == [-1, -1, -1]


def test_a_cache_holds_the_units_of_its_group_that_it_neither_left_out_nor_evicted() -> None:
    cache = FastUnitCache(2)
    units = share_units([cache])
    units.add(data(1))
    units.add_run(data(1), 2, 3)
    cache.advance(1)
    cache.skip(2)
    cache.advance(4)
    assert [cache.holds(number) for number in range(-1, 5)] == [False, False, False, True, True, False]


def test_a_unit_that_members_receive_at_two_times_is_one_unit_of_the_group() -> None:
    early, late = FastUnitCache(4), FastUnitCache(4)
    units, message = share_units([early, late]), data(1)
    assert units.add(message)
    early.put(message)
    assert units.add(message)
    late.put(message)
    assert units.end == early.end == late.end == 1
    assert early.get(message.identity) is late.get(message.identity) is message

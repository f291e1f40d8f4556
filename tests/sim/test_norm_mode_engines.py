"""NORM's modes and what an application changes while a session runs: both engines leave the same fingerprint."""

from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from protocols.errors import UsageError
from protocols.norm import NormConfig
from protocols.registry import protocol
from tests.sim.runs import Session
from topologies.generators import Star

LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "10Mbit"]),
        "delay": st.sampled_from(["1ms", "20ms"]),
        "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "1%", "10%"])}),
        "up": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "5%"])}),
    }
)
MODES = st.sampled_from(
    [
        {},
        {"nacking": "none"},
        {"nacking": "info"},
        {"repair_boundary": "object"},
        {"join": "all"},
        {"fti": "info"},
        {"fti": "preset", "preset_size": 30_000},
        {"rx_robust": 2},
        {"repair": "immediate"},
        {"repair": "immediate-once", "robust": 0},
        {"expire": 0.5, "cache_age": 0.2},
    ]
)
CALLS = st.lists(
    st.tuples(st.sampled_from([0.03, 0.1, 0.25, 0.9]), st.sampled_from(["cancel", "requeue", "adjust"]), st.integers(0, 3)),
    max_size=3,
    unique_by=lambda call: call[0],
)
SLOWER = {"rate": 200_000.0, "flow": 1.0, "cache_min": 1, "gsize": 100}


def session(link: dict[str, Any], receivers: int, modes: dict[str, Any], calls: list[Any], **network: Any) -> Session:
    """Run four objects, with calls at the sender meanwhile."""
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "link": link}).build()
    usual = {"rate": 500_000.0, "segment": 400, "block": 8, "parity": 2, "grtt": 0.05, "robust": 4}
    config = NormConfig(**{**usual, **modes})
    run = Session(topology, protocol("norm"), config, **network)
    for when in (0.01, 0.01, 0.05, 0.4):
        run.host.later(when, partial(run.send, 30_000))
    for when, verb, number in calls:
        run.host.later(when, partial(_change, run, verb, SLOWER if verb == "adjust" else number))
    run.network.run(8.0)
    return run


def _change(run: Session, verb: str, argument: object) -> None:
    run.host.call(getattr(run.sender, verb), argument)


@settings(deadline=None, max_examples=40, derandomize=True, phases=(Phase.generate,))
@given(LINKS, st.integers(1, 12), MODES, CALLS)
def test_engines_leave_equal_fingerprints(
    link: dict[str, Any], receivers: int, modes: dict[str, Any], calls: list[Any]
) -> None:
    ways = ({"engine": "strict"}, {"engine": "fast"}, {"engine": "strict", "wire": True})
    strict, fast, wire = (session(link, receivers, modes, calls, **way) for way in ways)
    assert strict.network.fingerprint() == fast.network.fingerprint() == wire.network.fingerprint()
    assert strict.received == fast.received == wire.received


def test_an_object_that_is_sent_again_reaches_receivers_without_requests_and_the_cancelled_one_none() -> None:
    lossy = {"delay": "1ms", "down": {"loss": "10%"}}
    run = session(
        lossy, 20, {"nacking": "none"}, [(0.4, "requeue", 0), (0.5, "requeue", 0), (0.03, "cancel", 1)], engine="fast"
    )
    complete = {number: sum(number in _ids(run, name) for name in run.received) for number in range(4)}
    # Parity is not sent unrequested: hardly a receiver has all 75 symbols of the objects sent once.
    assert complete[0] > complete[3]
    assert complete[1] == 0
    run = session(lossy, 20, {}, [(0.03, "cancel", 1)], engine="fast")
    assert all(_ids(run, name) == {0, 2, 3} for name in run.received)


def _ids(run: Session, name: str) -> set[int]:
    return {event.object_id for event in run.received[name]}


@pytest.mark.parametrize(("verb", "arguments"), [("set_nacking", ("none", None, None)), ("set_repair_boundary", ("object", 1))])
def test_receivers_of_the_fast_engine_refuse_modes_of_their_own(verb: str, arguments: tuple[Any, ...]) -> None:
    run = session({}, 2, {}, [], engine="fast")
    host = run.network.host("r1")
    with pytest.raises(UsageError, match="or `engine: strict`"):
        host.call(getattr(host.machine, verb), *arguments)
    strict = session({}, 2, {}, [], engine="strict").network.host("r1")
    strict.call(getattr(strict.machine, verb), *arguments)

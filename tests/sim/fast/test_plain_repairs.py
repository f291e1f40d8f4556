"""Plain retransmission, and parity that runs out: receivers are found by the symbols they lack, and results are equal."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.machine import Group
from protocols.norm.fast import FastNormReceiver
from protocols.norm.fast.sender_state import FastSenderState
from protocols.norm.messages import FLAG_REPAIR, Data
from protocols.norm.repair_requests import RequestedRepairs
from tests.sim.fast.test_lookahead import _leave, _partition, _restart, _second_object, _unicast, outcome, session
from tests.sim.runs import Session

Happening = Callable[[Session, Group], None] | None


def both(happens: Happening = None, when: float = 0.2, **parameters: Any) -> list[tuple[Any, ...]]:
    """Return the results of the fast and the strict engine; something happens at `when` seconds."""
    results = []
    for engine in ("fast", "strict"):
        made = session(engine, **parameters)
        if happens is not None:
            made.network.later(when, partial(happens, made, Group("239.0.0.1:1")))
        results.append(outcome(made.run(60.0)))
    return results


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    st.integers(0, 1000),
    st.integers(5, 40),
    st.sampled_from(["1%", "5%", "30%"]),
    st.sampled_from(["0%", "0%", "10%"]),
    st.sampled_from([{}, {"queue": 3}, {"rate": None}, {"delay": "0ms"}, {"delay": "0.3ms"}, {"delay": "40ms"}]),
    st.sampled_from([{"parity": 0}, {"parity": 0, "fec": 0}, {"parity": 1}, {"parity": 3}]),
    st.fixed_dictionaries(
        {
            "block": st.sampled_from([1, 4, 16, 64]),
            "backoff": st.sampled_from([0, 1, 4]),
            "probing": st.sampled_from(["active", "passive"]),
            "grtt": st.sampled_from([0.005, 0.05, 0.3]),
            "feedback": st.sampled_from(["multicast", "multicast", "unicast", "none"]),
            # The smaller one has no room for a parity symbol.
            "buffer": st.sampled_from([1000, 1_000_000]),
        }
    ),
    st.sampled_from([None, None, _leave, _restart, _second_object, _partition, _unicast]),
)
def test_the_results_are_those_of_the_strict_engine(
    seed: int,
    receivers: int,
    loss: str,
    shared: str,
    link: dict[str, Any],
    code: dict[str, int],
    parameters: dict[str, Any],
    happens: Happening,
) -> None:
    everything = {"size": 60_000, "link": link, "shared": shared, **code, **parameters}
    fast, strict = both(happens, seed=seed, receivers=receivers, loss=loss, **everything)
    assert fast == strict


@pytest.mark.parametrize(
    ("happens", "parameters"),
    [
        # A receiver whose NACKs were not answered several times ignores the NACKs of others, and later heeds them again.
        (_second_object, {"seed": 934038, "receivers": 8, "loss": "30%", "block": 16, "backoff": 1, "grtt": 0.005}),
        # A receiver loses the NACK that would suppress it, as nothing is missing before the repair being sent.
        (None, {"seed": 615299, "receivers": 20, "loss": "10%", "link": {"delay": "0.3ms"}, "block": 3, "grtt": 0.01}),
        # A NACK reaches one receiver apart from the others, before any reached the group.
        (_unicast, {"seed": 101612, "receivers": 60, "loss": "3%", "link": {"delay": "40ms"}, "block": 4, "backoff": 1}),
        # A suppressed receiver's hold-off ends while no later block is sent.
        (
            None,
            {"seed": 869034, "receivers": 20, "loss": "10%", "size": 30_000, "block": 3, "backoff": 1, "grtt": 0.01}
            | {"link": {"delay": "0.3ms"}, "probing": "passive"},
        ),
        # Answers to a probe are pending while back-offs begin.
        (None, {"seed": 5, "receivers": 100, "loss": "1%", "probing": "active"}),
        (
            # One receiver loses a new symbol, all lose the first repair behind it, and the next repair does not show the loss.
            _unicast,
            {
                "when": 0.356994946218581,
                "seed": 168136,
                "receivers": 60,
                "loss": "5%",
                "shared": "10%",
                "size": 300_000,
                "link": {"queue": 3},
                "block": 3,
                "backoff": 1,
                "auto_parity": 1,
                "grtt": 0.05,
                "probing": "passive",
            },
        ),
        (
            # A receiver is called at every NACK while two objects are incomplete, and has to be listed by what it lacks later.
            _second_object,
            {
                "when": 0.2217,
                "seed": 797221,
                "receivers": 20,
                "loss": "10%",
                "size": 300_000,
                "link": {"queue": 3},
                "block": 16,
                "backoff": 1,
                "probing": "active",
                "grtt": 0.05,
                "parity": 0,
                "fec": 0,
                "gsize": 10_000,
            },
        ),
    ],
)
def test_cases_that_differed_once(happens: Happening, parameters: dict[str, Any]) -> None:
    fast, strict = both(happens, **{"parity": 0, **parameters})
    assert fast == strict


@pytest.mark.parametrize(
    ("happens", "parameters"),
    [
        # A sender that had nothing to send rewinds while others of its packets are on their way.
        (None, {"seed": 209808, "receivers": 8, "loss": "30%", "size": 150_000, "block": 16, "backoff": 0, "grtt": 0.3}),
        # The last symbol of the object is short, so the repairs of its block do not belong to a burst.
        (None, {"seed": 5, "receivers": 100, "loss": "1%", "grtt": 0.05}),
        # A repair is on its way, sent alone, when a burst with the same repair begins.
        (None, {"seed": 615299, "receivers": 20, "loss": "10%", "link": {"delay": "0.3ms"}, "block": 3, "grtt": 0.01}),
        # A NORM_INFO is to be repaired when a burst of repairs is over.
        (None, {"seed": 0, "receivers": 4, "loss": "30%", "size": 100_000, "block": 3, "backoff": 4, "grtt": 0.01}),
        # So many lose each repeat that their numbers are kept as an array.
        (None, {"seed": 5, "receivers": 150, "loss": "30%", "size": 60_000, "block": 16}),
        # Parity has run out, so that it is repeated.
        (
            None,
            {"seed": 62380, "receivers": 8, "loss": "30%", "link": {"delay": "0ms"}, "backoff": 0, "grtt": 0.3, "parity": 1},
        ),
    ],
)
def test_bursts_of_repeats_change_nothing(happens: Happening, parameters: dict[str, Any]) -> None:
    fast, strict = both(happens, **{"parity": 0, **parameters})
    assert fast == strict


def test_repeats_are_sent_without_an_event_for_each() -> None:
    made = session("fast", receivers=30, loss="1%", parity=0, block=64, size=2_000_000, probing="passive").run()
    packets = made.network.traffic.packets
    assert packets["data"] > 1.25 * 1429
    # It is 1.08 when each repeat takes the sender's timer and an event for each link.
    assert made.network.events < 0.85 * sum(packets.values())


def test_receivers_send_nacks_in_lockstep(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[float] = []
    wake = FastNormReceiver.wake

    def count(receiver: FastNormReceiver, now: float) -> None:
        alone.append(now)
        wake(receiver, now)

    monkeypatch.setattr(FastNormReceiver, "wake", count)
    made = session("fast", receivers=100, loss="1%", parity=0, block=64, size=400_000).run()
    assert made.network.traffic.packets["nack"] > 50
    assert len(alone) < 10


def test_a_receiver_that_loses_a_repeat_it_does_not_lack_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    take = FastSenderState.take

    def count(state: FastSenderState, message: Any, now: float) -> int:
        taken.append(bool(message.flags & FLAG_REPAIR))
        return take(state, message, now)

    monkeypatch.setattr(FastSenderState, "take", count)
    made = session("fast", receivers=200, loss="1%", parity=0, block=64, size=400_000, probing="passive").run()
    repairs = made.network.traffic.packets["data"] - 286
    # Two of 200 lose each repeat, and are called at the next if they do not stay: 2.6 calls for each, with those that lost the
    # last new symbol before the repeats.
    assert taken.count(True) < 1.8 * repairs


def test_a_repair_concerns_few_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    apply = FastNormReceiver.apply_to_incomplete

    def count(machines: list[Any], message: Any, now: float, coordinator: Any) -> Any:
        if message.repair:
            asked.append(len(machines))
        return apply(machines, message, now, coordinator)

    monkeypatch.setattr(FastNormReceiver, "apply_to_incomplete", staticmethod(count))
    made = session("fast", receivers=200, loss="1%", parity=0, block=64, size=400_000, probing="passive").run()
    repairs = made.network.traffic.packets["data"] - 286
    assert repairs > 200
    # Each symbol is missing at 2 of 200. Only where the sender rewinds are all called that miss anything; to call these at
    # each repair would be 53 calls on average.
    assert sorted(asked)[len(asked) // 2] <= 8
    assert sum(asked) < 25 * repairs


def test_losses_on_a_link_that_all_share_are_recorded_without_a_call_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    take = FastSenderState.take

    def count(state: FastSenderState, message: Any, now: float) -> int:
        called.append(message.symbol)
        return take(state, message, now)

    monkeypatch.setattr(FastSenderState, "take", count)
    made = session("fast", receivers=50, loss="0%", shared="5%", parity=0, block=64, size=400_000, probing="passive").run()
    trunk = made.network.links()[0]
    assert trunk.lost > 10
    # Only those of repairs and of the first symbol of a block are noticed by each receiver on its own.
    assert len(called) < 50 * trunk.lost / 4


def test_receivers_that_miss_the_same_share_what_they_overheard(monkeypatch: pytest.MonkeyPatch) -> None:
    merges: list[int] = []
    merged = RequestedRepairs.merged

    def count(known: RequestedRepairs, other: RequestedRepairs) -> RequestedRepairs:
        merges.append(1)
        return merged(known, other)

    monkeypatch.setattr(RequestedRepairs, "merged", count)
    made = session("fast", receivers=300, loss="1%", parity=0, block=64, size=100_000, probing="passive").run()
    nacks = made.network.traffic.packets["nack"]
    # Two of 300 receivers request the NORM_INFO. If the others therefore looked for more than symbols in each NACK, each of
    # them would merge all NACKs of its back-off again at every NACK: 300 merges for each.
    assert nacks > 50
    assert len(merges) < 5 * nacks


def test_a_receiver_that_lost_the_last_new_symbols_interprets_no_repair_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreted: list[bool] = []
    receive = FastSenderState.receive

    def count(state: FastSenderState, message: Any, now: float) -> None:
        if isinstance(message, Data):
            interpreted.append(bool(message.flags & FLAG_REPAIR))
        receive(state, message, now)

    monkeypatch.setattr(FastSenderState, "receive", count)
    made = session("fast", receivers=200, loss="1%", parity=0, block=64, size=400_000, probing="passive").run()
    assert made.network.traffic.packets["data"] > 500
    # The first and the last symbol of the object concern every receiver.
    assert interpreted.count(False) < 3 * 200
    assert interpreted.count(True) < 20

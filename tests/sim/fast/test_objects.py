"""Small objects, to receivers in lockstep: what opens, repeats the NORM_INFO of, or ends an object, and probes between them."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from experiments.running.content import Accounted, Extent
from protocols.content import LATER, Content, Offer
from protocols.norm import NormConfig
from protocols.norm.fast import FastNormReceiver
from protocols.registry import protocol
from tests.sim.runs import Session
from topologies.generators import Star

SEGMENT = 400
LOSS = st.sampled_from(["0%", "1%", "5%", "20%"])
SIZES = st.sampled_from([0, 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 8 * SEGMENT, 8 * SEGMENT + 1, 20 * SEGMENT])
OBJECTS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.01, 0.2, 1.1, 2.6]), SIZES, st.sampled_from([b"", b"name"])), min_size=1, max_size=6
)
CONFIGS = st.fixed_dictionaries(
    {
        "block": st.sampled_from([1, 2, 8]),
        "parity": st.sampled_from([0, 2]),
        "backoff": st.sampled_from([0, 4]),
        "grtt": st.sampled_from([0.01, 0.3]),
        "probing": st.sampled_from(["active", "passive"]),
    }
)
WISHES = st.sampled_from([(), (None,), (LATER,)])
"""Sinks that receivers return for some offers: None refuses an object, LATER postpones it."""


class Choosy(Session):
    """A session whose receivers refuse or postpone some objects."""

    wishes: tuple[Any, ...] = ()

    def _taker(self, name: str) -> Callable[[Offer], Any]:
        rng = Random(name)
        return lambda offer: rng.choice((Accounted(), Accounted(), Accounted(), *self.wishes))


def session(engine: str, link: dict[str, Any], receivers: int, config: NormConfig, objects: Any, wishes: Any) -> Choosy:
    """Run a session of objects: when each is submitted (seconds), its bytes, and its NORM_INFO."""
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "link": link}).build()
    run = Choosy(topology, protocol("norm"), config, engine=engine)
    run.wishes = wishes
    for when, size, info in objects:
        run.host.later(when, partial(_submit, run, Content(Extent(size), info, is_file=False)))
    run.network.run(8.0)
    return run


def _submit(run: Session, content: Content) -> None:
    run.host.call(run.sender.submit, content)


@settings(deadline=None, max_examples=60, derandomize=True, phases=(Phase.generate,))
@given(LOSS, st.sampled_from([1, 3, 20, 60]), CONFIGS, OBJECTS, WISHES)
def test_engines_leave_equal_fingerprints(
    loss: str, receivers: int, settings: dict[str, Any], objects: Any, wishes: Any
) -> None:
    config = NormConfig(rate=500_000.0, segment=SEGMENT, robust=4, **settings)
    link = {"rate": "10Mbit", "delay": "5ms", "down": {"loss": loss}, "up": {"loss": "5%"}}
    strict, fast = (session(engine, link, receivers, config, objects, wishes) for engine in ("strict", "fast"))
    assert strict.network.fingerprint() == fast.network.fingerprint()
    assert strict.received == fast.received
    hosts = fast.network.topology.hosts
    assert [strict.network.host(name).machine.counts() for name in hosts] == [
        fast.network.host(name).machine.counts() for name in hosts
    ]


@pytest.mark.parametrize("info", [b"name", b""])
@pytest.mark.parametrize("segments", [1, 20])
def test_a_receiver_that_loses_nothing_is_not_called_for_each_object(
    monkeypatch: pytest.MonkeyPatch, segments: int, info: bytes
) -> None:
    calls = 0
    receive = FastNormReceiver.receive

    def counted(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        receive(*arguments)

    monkeypatch.setattr(FastNormReceiver, "receive", counted)
    config = NormConfig(rate=500_000.0, segment=SEGMENT, grtt=0.05, probe_min=0.1, probe_max=0.1)
    objects = [(0.1 * number, segments * SEGMENT, info) for number in range(20)]
    run = session("fast", {"rate": "10Mbit", "delay": "5ms"}, 100, config, objects, ())
    assert all(len(events) == 20 for events in run.received.values())
    assert run.network.traffic.packets["cc"] > 20
    # For the first messages of the session, for the first symbol behind a probe that follows the NORM_INFO, and if it was the
    # one to answer a probe.
    assert calls < 100 * 6

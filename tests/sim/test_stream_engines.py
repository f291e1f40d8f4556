"""Streams in the simulator: both engines, with messages as objects and as bytes, leave the same fingerprint."""

import random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from protocols.norm import NormConfig
from protocols.stream import FLUSHES, StreamSettings
from tests.sim.stream_sessions import StreamSession
from topologies.generators import Star

LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "10Mbit"]),
        "delay": st.sampled_from(["1ms", "20ms"]),
        "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "1%", "10%"])}),
        "up": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "5%"])}),
    }
)
PARAMETERS = st.fixed_dictionaries(
    {"parity": st.sampled_from([0, 4]), "auto_parity": st.just(0), "block": st.sampled_from([8, 20])}
) | st.just({"fec": 2, "fec_m": 16, "block": 6, "parity": 3, "auto_parity": 1})


def session(link: dict[str, Any], receivers: int, parameters: dict[str, Any], seed: int, **network: Any) -> StreamSession:
    """Run a stream with an object before it, and two in the middle of it."""
    rng, config = random.Random(seed), NormConfig(**parameters, rate=250_000.0, segment=400, grtt=0.05, robust=4, flow=6.0)
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "link": link}).build()
    run = StreamSession(topology, config, StreamSettings(60_000, b"stream"), **network)
    when = 0.01
    for number in range(60):
        when += rng.choice([0.0, 0.002, 0.05])
        run.write_at(when, rng.randbytes(rng.randint(1, 900)), FLUSHES[rng.randrange(3)])
        if number in (5, 40):
            run.submit_at(when, 20_000)
    run.host.later(when + 0.1, run.writer.close)
    run.network.run(6.0)
    return run


@settings(deadline=None, max_examples=12, derandomize=True, phases=(Phase.generate,))
@given(LINKS, st.integers(1, 12), PARAMETERS, st.integers(0, 9))
def test_engines_leave_equal_fingerprints(link: dict[str, Any], receivers: int, parameters: dict[str, Any], seed: int) -> None:
    runs = [
        session(link, receivers, parameters, seed, engine="strict"),
        session(link, receivers, parameters, seed, engine="fast"),
        session(link, receivers, parameters, seed, engine="strict", wire=True),
    ]
    assert len({run.network.fingerprint() for run in runs}) == 1
    strict, fast, _ = runs
    assert {name: (sink.parts, sink.ended) for name, sink in strict.sinks.items()} == {
        name: (sink.parts, sink.ended) for name, sink in fast.sinks.items()
    }


def test_every_receiver_of_a_simulated_stream_gets_all_of_it() -> None:
    run = session({"down": {"loss": "2%"}, "delay": "5ms"}, 20, {"parity": 4, "block": 8}, 3, engine="fast")
    assert len(run.sinks) == 20
    assert {(sink.data, sink.ended) for sink in run.sinks.values()} == {(b"".join(run.written), "commit")}

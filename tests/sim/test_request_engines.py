"""Strict and fast runs with ACKs, commands and the three kinds of feedback leave equal fingerprints and events."""

import random
from functools import partial
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from protocols.acknowledgement import AckRequest
from protocols.events import AcksCompleted, CommandReceived, CommandSent, Event, NodeAcknowledged
from protocols.norm import NormConfig
from protocols.registry import protocol
from tests.sim.runs import Session
from topologies.generators import Star

KINDS = (AcksCompleted, NodeAcknowledged, CommandSent, CommandReceived)


class Asking(Session):
    """A `Session` whose sender asks for ACKs and sends commands; `events` are what its hosts were told of them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.events: list[tuple[str, float, Event]] = []
        super().__init__(*arguments, **options)

    def _on_sender_event(self, event: Event) -> None:
        super()._on_sender_event(event)
        if isinstance(event, KINDS):
            self.events.append(("", self.host.now, event))

    def _listener(self, name: str) -> Any:
        listen = super()._listener(name)

        def both(event: Event) -> None:
            listen(event)
            if isinstance(event, KINDS):
                self.events.append((name, self.network.host(name).now, event))

        return both

    def at(self, when: float, verb: str, *arguments: Any) -> None:
        """Call a method of the sender at a time of the simulation."""
        self.host.later(when, lambda: self.host.call(getattr(self.sender, verb), *arguments))


def session(link: dict[str, Any], receivers: int, parameters: dict[str, Any], seed: int, **network: Any) -> Asking:
    rng = random.Random(seed)
    config = NormConfig(**parameters, rate=250_000.0, segment=400, grtt=0.05, robust=4, gsize=20, probe_min=0.3)
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "link": link}).build()
    run = Asking(topology, protocol("norm"), config, **network)
    when, nodes = 0.01, tuple(range(2, 2 + receivers))
    for number in range(4):
        run.host.later(when, partial(run.send, 30_000))
        asked = AckRequest(tuple(rng.sample((*nodes, 999), min(3, receivers))), number % 2 == 1, replaces_flush=number == 3)
        run.at(when + rng.choice([0.0, 0.01, 0.5]), "require_acks", number, asked)
        run.at(when + 0.05, "send_command", b"command", rng.randrange(4))
        when += rng.choice([0.05, 0.3, 2.0])
    run.network.run(12.0)
    return run


LINKS = st.fixed_dictionaries(
    {"delay": st.sampled_from(["1ms", "30ms"])},
    optional={"loss": st.sampled_from(["1%", "10%"]), "down": st.fixed_dictionaries({"loss": st.sampled_from(["3%", "20%"])})},
)
PARAMETERS = st.fixed_dictionaries(
    {
        "parity": st.sampled_from([0, 4]),
        "auto_parity": st.just(0),
        "block": st.sampled_from([8, 20]),
        "feedback": st.sampled_from(["multicast", "multicast", "unicast", "none"]),
    }
)


@settings(deadline=None, max_examples=14, derandomize=True, phases=(Phase.generate,))
@given(LINKS, st.integers(1, 12), PARAMETERS, st.integers(0, 9))
def test_engines_leave_equal_fingerprints(link: dict[str, Any], receivers: int, parameters: dict[str, Any], seed: int) -> None:
    runs = [
        session(link, receivers, parameters, seed, engine="strict"),
        session(link, receivers, parameters, seed, engine="fast"),
        session(link, receivers, parameters, seed, engine="strict", wire=True),
    ]
    assert len({run.network.fingerprint() for run in runs}) == 1
    assert runs[0].events == runs[1].events == runs[2].events
    assert [type(event) for *_, event in runs[0].events].count(AcksCompleted) == 4


def test_a_thousand_simulated_receivers_confirm_an_object() -> None:
    topology = Star.model_validate({"kind": "star", "receivers": 1000, "link": {"down": {"loss": "1%"}}}).build()
    config = NormConfig(rate=2.5e6, grtt=0.05, gsize=1000)
    run = Asking(topology, protocol("norm"), config, engine="fast")
    run.send(500_000)
    run.at(0.0, "require_acks", 0, AckRequest(tuple(range(2, 1002)), replaces_flush=True))
    run.run()
    (completed,) = [event for *_, event in run.events if isinstance(event, AcksCompleted)]
    assert (len(completed.acknowledged), completed.missing) == (1000, ())

"""Receivers that are called at every message: most messages of a session take the short cut."""

from typing import Any

import pytest

from protocols.norm.fast import SingleNormReceiver
from protocols.norm.receiver import NormReceiver
from protocols.registry import protocol
from tests.sim.runs import Session
from topologies.generators import Star

NORM = protocol("norm")


@pytest.mark.parametrize("settings", [{"congestion": "norm"}, {"congestion": "ecn"}])
def test_hardly_any_content_is_interpreted(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> None:
    topology = Star.model_validate({"kind": "star", "receivers": 6, "link": {"rate": "8Mbit", "down": {"loss": "1%"}}}).build()
    config = NORM.config(**settings, segment=500, block=64, parity=4, grtt=0.05)
    interpreted = []
    plain = NormReceiver.receive

    def receive(self: NormReceiver, message: Any, *rest: Any) -> None:
        interpreted.append(message.kind)
        plain(self, message, *rest)

    monkeypatch.setattr(NormReceiver, "receive", receive)
    session = Session(topology, NORM, config, engine="fast")
    session.send(320_000)
    session.run()
    assert {type(session.network.host(name).machine) for name in session.received} == {SingleNormReceiver}
    assert all(len(events) == 1 for events in session.received.values())
    # 640 symbols for each of six receivers, and repairs: the first of an object, and some behind losses.
    assert interpreted.count("data") < 64

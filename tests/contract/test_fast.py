"""The fast machines of every protocol that has them, in the simulator, which advances many of them in lockstep."""

import pytest

from experiments.contract import checks
from experiments.contract.case import Case
from experiments.contract.recorder import Recorder
from experiments.contract.worlds import WORLDS
from protocols.event_layer import innermost
from protocols.fast.contract import FastMachine
from protocols.machine import Group
from tests.contract.cases import CASES, FAST_CASES
from tests.sim.runs import Session
from topologies.generators import Star

worlds = pytest.mark.parametrize("world", ["simpy", "simpy-bytes"])
cases = pytest.mark.parametrize("case", FAST_CASES, ids=str)


@worlds
@cases
@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_content_arrives_equal_and_once(case: Case, world: str, loss: float) -> None:
    checks.arrives(case, WORLDS[world], loss)


@worlds
@cases
def test_an_application_may_call_the_machine_during_an_event(case: Case, world: str) -> None:
    checks.answers_after_events(case, WORLDS[world])


def run(case: Case, engine: str, *, wire: bool = False) -> Session:
    """Run a session of two objects over lossy links, with enough receivers for a lockstep group."""
    link = {"rate": "100Mbit", "delay": "5ms", "down": {"loss": 0.05}}
    star = Star.model_validate({"kind": "star", "receivers": 8, "link": link})
    session = Session(star.build(), case.protocol, case.protocol.config(**case.settings), wire=wire, engine=engine)
    session.send(50_000)
    session.send(20_000)
    return session.run()


@pytest.mark.parametrize("wire", [False, True], ids=["objects", "bytes"])
@pytest.mark.parametrize("case", [case for case in CASES if not case.servers], ids=str)
def test_the_fast_engine_equals_plain_machines_in_the_strict_engine(case: Case, wire: bool) -> None:
    fast, strict = run(case, "fast", wire=wire), run(case, "strict", wire=wire)
    assert fast.network.fingerprint() == strict.network.fingerprint()
    assert isinstance(innermost(fast.sender), FastMachine) == (case.protocol.fast is not None)
    assert not isinstance(innermost(strict.sender), FastMachine)


@cases
def test_fast_machines_derive_from_the_plain_ones(case: Case) -> None:
    group, plain = Group("all"), Case(case.protocol, case.settings)
    made = case.sender(Recorder(), group), case.receiver(Recorder(), group, 1)
    for derived, base in zip(made, (plain.sender(Recorder(), group), plain.receiver(Recorder(), group, 1)), strict=True):
        assert isinstance(innermost(derived), type(innermost(base)))
        assert isinstance(innermost(derived), FastMachine)
        assert not isinstance(innermost(base), FastMachine)

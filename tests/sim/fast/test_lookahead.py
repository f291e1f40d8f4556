"""Packets scheduled ahead: fewer events, and nothing else is different."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.content import Extent
from protocols.machine import Address, Content, Group, Message, Packet
from protocols.norm.fast import FastNormReceiver
from protocols.registry import protocol
from sim.faults import Faults
from sim.network import Network
from sim.noise import Noise
from sim.timers import KernelHost
from tests.sim.runs import Session
from topologies.generators import Lan, Star

NORM = protocol("norm")
LINK = {"rate": "10Mbit", "delay": "5ms"}


def session(
    engine: str, seed: int = 1, *, receivers: int = 8, loss: Any = "2%", size: int = 300_000, **parameters: Any
) -> Session:
    """A star behind one trunk, with a sender that looks a whole block ahead; `shared` is the loss on the trunk."""
    lossy = {**LINK, **parameters.pop("link", {}), "down": {"loss": loss}}
    trunk = {**LINK, "down": {"loss": parameters.pop("shared", "0%")}}
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "trunk": trunk, "link": lossy}).build()
    parameters["auto_parity"] = min(parameters.get("auto_parity", 0), parameters.get("parity", 16))
    config = NORM.config(**{"rate": 250_000.0, "grtt": 0.05, **parameters})
    made = Session(topology, NORM, config, seed=seed, engine=engine)
    made.send(size)
    return made


def outcome(made: Session) -> tuple[Any, ...]:
    """Return all results of a run."""
    network = made.network
    return (
        network.fingerprint(),
        network.deliveries,
        network.links(),
        dict(network.traffic.packets),
        dict(network.traffic.octets),
    )


class Ledger:
    """An observer that records every packet."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, int, str, int | None, int]] = []

    def sent(self, now: float, host: KernelHost, message: Message, size: int) -> None:
        """Record it."""
        self.rows.append((now, host.place, message.kind, message.identity, size))

    def sent_new(self, times: Sequence[float], host: KernelHost, kind: str, size: int, identity: int) -> None:
        """Record each."""
        self.rows += [(when, host.place, kind, identity + number, size) for number, when in enumerate(times)]

    def sent_feedback(self, now: float, places: Sequence[int], kind: str, size: int) -> None:
        """Record each."""
        self.rows += [(now, place, kind, None, size) for place in places]


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    st.integers(0, 1000),
    st.integers(4, 40),
    st.sampled_from(["0%", "1%", "5%", "30%", {"model": "content", "p": "5%"}]),
    st.sampled_from([{}, {"queue": 3}, {"rate": "2.1Mbit"}, {"rate": None}, {"delay": "0ms"}, {"delay": "0.3ms"}]),
    st.fixed_dictionaries(
        {
            "block": st.sampled_from([3, 16, 64]),
            "parity": st.sampled_from([0, 1, 2, 8]),
            "backoff": st.sampled_from([0, 4]),
            "auto_parity": st.sampled_from([0, 1]),
            "probing": st.sampled_from(["active", "passive"]),
            "grtt": st.sampled_from([0.01, 0.05, 0.3]),
        }
    ),
)
def test_the_results_are_those_of_the_strict_engine(
    seed: int, receivers: int, loss: Any, link: dict[str, Any], parameters: dict[str, Any]
) -> None:
    runs = [
        session(engine, seed, receivers=receivers, loss=loss, size=100_000, link=link, **parameters).run()
        for engine in ("fast", "strict")
    ]
    assert outcome(runs[0]) == outcome(runs[1])


@pytest.mark.parametrize(
    "parameters",
    [
        # One receiver loses the last packet that was an event and the first that is none.
        {"seed": 931702, "receivers": 20, "loss": "5%", "block": 16, "parity": 0, "backoff": 1},
        # All lose a packet in the middle of a block, between two bursts.
        {"seed": 622808, "receivers": 4, "loss": "12%", "link": {"delay": "0.3ms"}, "parity": 0, "backoff": 1, "grtt": 0.3},
        # A NACK arrives, packets are sent one by one, and only then the sender plans a burst again.
        {
            "seed": 17938,
            "receivers": 4,
            "loss": "1%",
            "size": 100_000,
            "block": 16,
            "backoff": 1,
            "auto_parity": 1,
            "grtt": 0.01,
        },
        {"seed": 958899, "receivers": 5, "loss": "3%", "size": 100_000, "link": {"delay": "40ms"}, "parity": 16, "grtt": 0.01},
        {"seed": 10620, "receivers": 8, "loss": "1%", "link": {"delay": "40ms"}, "backoff": 0},
        # One loses the last symbol before repairs, which do not reveal the loss.
        {"seed": 800670, "receivers": 8, "loss": "3%", "size": 100_000, "block": 4, "parity": 16, "backoff": 4, "grtt": 0.01},
        # One loses a whole block, and requests it as a block.
        {"seed": 98, "receivers": 20, "loss": "30%", "size": 100_000, "block": 4, "parity": 16, "backoff": 0},
        # A receiver that has to answer a probe is suppressed, and misses more of a later block.
        {
            "seed": 2000103,
            "receivers": 5,
            "loss": "5%",
            "link": {"queue": 3},
            "block": 64,
            "parity": 2,
            "backoff": 4,
            "grtt": 0.3,
            "gsize": 10,
        },
        # A receiver that loses one repair of several is called at each of the next, until one changes its state.
        {"seed": 6000094, "receivers": 4, "loss": "30%", "block": 4, "parity": 3, "backoff": 0, "grtt": 0.005, "gsize": 100},
        # A receiver that is called at every NACK is also listed by the symbols that it lacks.
        {
            "seed": 1000041,
            "receivers": 60,
            "loss": "30%",
            "block": 4,
            "parity": 0,
            "backoff": 1,
            "grtt": 0.01,
            "gsize": 100,
            "probing": "passive",
        },
        # The sender's probe is due before its repairs, and both wait for the rate.
        {
            "seed": 557933,
            "receivers": 20,
            "loss": "1%",
            "block": 4,
            "parity": 1,
            "backoff": 0,
            "grtt": 0.01,
            "probing": "active",
        },
    ],
)
def test_deferred_losses_are_applied_exactly(parameters: dict[str, Any]) -> None:
    all_parameters: dict[str, Any] = {"block": 64, "parity": 8, "probing": "passive", **parameters}
    assert outcome(session("fast", **all_parameters).run()) == outcome(session("strict", **all_parameters).run())


@pytest.mark.parametrize("receivers", [1, 3, 12])
def test_a_nack_reaches_the_sender_at_the_time_of_the_packet_that_it_follows(receivers: int) -> None:
    topology = Lan.model_validate({"kind": "lan", "receivers": receivers, "link": {"down": {"loss": "5%"}}}).build()
    config = NORM.config(rate=125_000.0, segment=1000, block=16, parity=0, backoff=0, grtt=0.05)
    for seed in range(8):
        fast, strict = (Session(topology, NORM, config, seed=seed, engine=engine) for engine in ("fast", "strict"))
        for made in (fast, strict):
            made.send(30_000)
        assert outcome(fast.run()) == outcome(strict.run())


def test_deferred_losses_are_no_events() -> None:
    made = session("fast", receivers=10, loss="1%", parity=16, block=64, size=3_000_000).run()
    # It is 0.6 when the next packet is an event after two losses in a row, or the loss of a repair.
    assert made.network.events < 0.35 * sum(made.network.traffic.packets.values())


def test_a_nack_does_not_make_events_of_deferred_losses_of_others() -> None:
    made = session("fast", receivers=100, loss="1%", parity=16, block=64, size=1_000_000).run()
    assert made.network.traffic.packets["nack"] > 40
    # It is 0.73 when the next packet is an event after the loss of the packet before a NACK.
    assert made.network.events < 0.6 * sum(made.network.traffic.packets.values())


def test_packets_without_losses_cost_few_events() -> None:
    made = session("fast", loss="0%").run()
    # Otherwise a packet is three: the sender's timer, the switch and the leaves.
    assert made.network.events < sum(made.network.traffic.packets.values())


@pytest.mark.parametrize("feedback", ["unicast", "none"])
def test_receivers_that_send_no_feedback_to_the_group_advance_in_lockstep(
    feedback: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    receive = FastNormReceiver.receive

    def count(receiver: FastNormReceiver, message: Message, source: Address, to: Address, now: float) -> None:
        calls.append(message.kind)
        receive(receiver, message, source, to, now)

    monkeypatch.setattr(FastNormReceiver, "receive", count)
    made = session("fast", receivers=100, loss="1%", feedback=feedback, grtt=0.1).run()
    assert calls.count("data") < 0.05 * 100 * made.network.traffic.packets["data"]


def test_losses_of_content_only_are_computed_ahead() -> None:
    loss = {"model": "content", "p": "2%"}
    made = session("fast", receivers=30, loss=loss, shared=loss, block=64).run()
    assert made.network.events < sum(made.network.traffic.packets.values())


def test_a_further_block_costs_hardly_more_than_one_event() -> None:
    short, long = (session("fast", loss="0%", size=size, block=16).run().network for size in (1_500_000, 3_000_000))
    blocks = (long.traffic.packets["data"] - short.traffic.packets["data"]) / 16
    assert blocks > 60
    assert long.events - short.events < 1.5 * blocks


def test_reading_results_at_any_time_gives_the_present_state_and_changes_nothing() -> None:
    fast, strict = session("fast"), session("strict")
    for step in range(1, 150):
        for made in (fast, strict):
            made.network.run(0.0071 * step)
        assert fast.network.deliveries == strict.network.deliveries
        assert fast.network.traffic.octets == strict.network.traffic.octets
        assert fast.network.links() == strict.network.links()
        assert fast.sender.counts() == strict.sender.counts()
        assert fast.network.fingerprint() == strict.network.fingerprint()
    assert outcome(fast.run()) == outcome(strict.run()) == outcome(session("fast").run())


def test_a_run_can_be_stepped() -> None:
    made = session("fast")
    while not made.flushed:
        assert made.network.step()
    assert made.network.fingerprint() == session("strict").run().network.fingerprint()


def test_observers_are_called_for_every_packet_in_order() -> None:
    ledgers = []
    for engine in ("fast", "strict"):
        made, ledger = session(engine), Ledger()
        made.network.observers.append(ledger)
        made.run()
        ledgers.append(ledger.rows)
    assert ledgers[0] == ledgers[1]
    assert [row[0] for row in ledgers[0]] == sorted(row[0] for row in ledgers[0])


def _leave(made: Session, group: Group) -> None:
    for name in ("r3", "r5"):
        made.network.host(name).leave(group)


def _restart(made: Session, group: Group) -> None:
    del group
    made.host.stop()
    made.network.later(0.6, lambda: setattr(made, "flushed", True))


def _second_object(made: Session, group: Group) -> None:
    del group
    made.host.call(made.sender.submit, Content(Extent(50_000), b"more"))


def _partition(made: Session, group: Group) -> None:
    del group
    undo = Faults(made.network).partition([["r1", "r2"], "rest"])
    made.network.later(0.3, undo)


def _unicast(made: Session, group: Group) -> None:
    """Other traffic over the links on which packets are scheduled ahead."""
    del group

    def send() -> None:
        made.network.host("r2").send(Packet(Noise(), 1400, "r4"))

    for n in range(20):
        made.network.later(0.21 + 0.0003 * n, send)


@pytest.mark.parametrize(
    "parameters",
    [
        {"seed": 133754, "receivers": 8, "loss": "3%", "size": 300_000, "link": {"rate": "2.1Mbit"}, "block": 3, "backoff": 1},
        {"seed": 136202, "receivers": 60, "loss": "1%", "size": 100_000, "block": 16, "backoff": 0, "parity": 3, "grtt": 0.005},
    ],
)
def test_a_receiver_that_leaves_has_heard_the_sender_when_its_own_link_brought_the_last_packet(
    parameters: dict[str, Any],
) -> None:
    """A NACK does not go down the link of its own sender, so that the queue there is shorter than those of the others."""
    probing = "active" if parameters["seed"] == 133754 else "passive"
    all_parameters: dict[str, Any] = {"grtt": 0.01, "parity": 0, "probing": probing, **parameters}
    outcomes = []
    for engine in ("fast", "strict"):
        made = session(engine, **all_parameters)
        made.network.later(0.20531, partial(_leave, made, Group("239.0.0.1:1")))
        outcomes.append(outcome(made.run(60.0)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("happens", [_leave, _restart, _second_object, _partition, _unicast])
@pytest.mark.parametrize("when", [0.2, 0.20531, 0.2217])
def test_changes_during_a_burst_have_the_same_effect(happens: Callable[[Session, Group], None], when: float) -> None:
    runs = []
    for engine in ("fast", "strict"):
        made = session(engine)
        made.network.later(when, partial(happens, made, Group("239.0.0.1:1")))
        runs.append(made.run(20.0))
    assert outcome(runs[0]) == outcome(runs[1])


def test_a_network_driven_by_its_simpy_environment_has_the_same_results() -> None:
    made = session("fast")
    made.network.env.run(until=5.0)
    strict = session("strict")
    strict.network.env.run(until=5.0)
    assert isinstance(made.network, Network)
    assert made.network.fingerprint() == strict.network.fingerprint()

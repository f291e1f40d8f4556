"""The two engines, and control of a run: step, pause, read, continue, and a user's own processes."""

from collections.abc import Generator
from typing import Any

import pytest
import simpy

from examples.video_source import play
from protocols.errors import ContractError, UsageError
from protocols.machine import Message
from protocols.registry import protocol
from protocols.tcp.options import TcpOptions
from sim.network import Network
from tests.sim.probes import GROUP, Probe, probe_on
from tests.sim.runs import Session
from topologies.generators import Star
from topologies.spec import Topology

NORM = protocol("norm")


def star(receivers: int = 3, loss: str = "0%") -> Topology:
    """Links of 10 Mbit/s and 5 ms."""
    link = {"rate": "10Mbit", "delay": "5ms", "down": {"loss": loss}}
    return Star.model_validate({"kind": "star", "receivers": receivers, "link": link}).build()


def session(engine: str = "auto", loss: str = "5%", receivers: int = 12) -> Session:
    """NORM with something to send."""
    made = Session(star(receivers, loss), NORM, NORM.config(rate=500_000.0, grtt=0.05), engine=engine)
    made.send(200_000)
    return made


def test_auto_is_fast_unless_deliveries_are_observed_in_order() -> None:
    told: list[tuple[float, str, Message]] = []
    network = Network(star(), seed=1, on_delivery=lambda now, host, message: told.append((now, host, message)))
    assert network.strict
    assert not Network(star(), seed=1).strict
    for name in network.topology.hosts:
        probe_on(network, name)
    for name in ("sender", "r2"):
        network.host(name).call(lambda now, name=name: _say(network, name))
    network.run()
    assert sorted(host for _, host, _ in told) == ["r1", "r1", "r2", "r3", "r3", "sender"]
    assert [when for when, _, _ in told] == sorted(when for when, _, _ in told)


def _say(network: Network, name: str) -> None:
    machine = network.host(name).machine
    assert isinstance(machine, Probe)
    machine.say(1)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"engine": "quick"}, "'quick' is not allowed; one of auto, strict, fast"),
        ({"engine": "fast", "on_delivery": print}, "strict or auto"),
    ],
)
def test_an_engine_that_is_not_there_or_cannot_is_refused(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Network(star(), seed=1, **parts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (TcpOptions(control="x"), "^connections.control: 'x' is not allowed; one of reno, cubic, "),
        (TcpOptions(mss=0), "^connections.mss: 0 is not allowed; a whole number from 1 on$"),
        (TcpOptions(buffer=-1), "^connections.buffer: -1 is not allowed; a whole number from 1 on$"),
    ],
)
def test_options_by_which_no_connection_carries_anything_are_refused(options: TcpOptions, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Network(star(), seed=1, connections=options)


def test_the_strict_engine_spends_an_event_on_every_delivery() -> None:
    strict, fast = session("strict").run().network, session("fast").run().network
    assert strict.deliveries == fast.deliveries
    assert strict.events > strict.deliveries > 2 * fast.events


def test_the_strict_engine_detects_a_deadline_that_was_not_announced() -> None:
    network = Network(star(), seed=1, engine="strict")
    probes = {name: probe_on(network, name) for name in network.topology.hosts}
    probes["r1"].on_receive = lambda message, now: setattr(probes["r1"], "deadline", now + 1.0)
    network.host("sender").call(lambda now: probes["sender"].say(1))
    with pytest.raises(ContractError, match="r1 did not announce"):
        network.run()


@pytest.mark.parametrize("engine", ["strict", "fast"])
def test_a_run_in_pieces_is_the_run_in_one_go(engine: str) -> None:
    whole = session(engine).run().network
    pieces = session(engine)
    network = pieces.network
    for until in (0.01, 0.1, 0.1, 0.25):
        network.run(until, lambda: pieces.flushed)
        assert network.now == until
    for _ in range(100):
        assert network.next_at < 1e9
        assert network.step()
    # Reading the state of a machine changes nothing.
    counts = [network.host(name).machine.counts() for name in network.topology.hosts]
    assert sum(row.get("data_received", 0) for row in counts) > 0
    pieces.run()
    assert network.fingerprint() == whole.fingerprint()
    assert network.events == whole.events


def test_pause_ends_the_run_under_way_and_it_can_go_on() -> None:
    env = simpy.Environment()
    network = Network(star(), seed=1, environment=env)
    probe = probe_on(network, "sender", [(0.1 * n, n, 100, GROUP, None) for n in range(10)])

    def process() -> Generator[simpy.Event, Any, None]:
        yield env.timeout(0.35)
        network.pause()

    env.process(process())
    network.run(10.0)
    assert network.now == pytest.approx(0.35)
    assert len(probe.script) == 6
    network.run(10.0)
    assert network.now == 10.0
    assert not probe.script
    assert not network.step()


def test_a_video_source_lives_beside_the_network() -> None:
    clean, lossy = play(receivers=5, loss="0%"), play(receivers=5, loss="5%")
    assert all(len(viewer) == 100 for viewer in clean + lossy)
    # The large pictures take 40 kB / 1.25 MB/s, and their links 17 ms more.
    assert max(map(max, clean)) < 0.06 < max(map(max, lossy))

"""Layers: machines that stand on other machines pass the contract suite as these do, and keep their fast path."""

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from experiments.contract import checks
from experiments.contract.bench import Bench
from experiments.contract.case import SETTINGS, Case
from experiments.contract.conversation import Answerer, Caller
from experiments.contract.fake_host import FakeHost
from experiments.contract.losses import randomly
from experiments.contract.recorder import Recorder
from experiments.contract.worlds import WORLDS
from experiments.running.content import Accounted, Extent
from protocols.errors import LivelockError, UsageError
from protocols.event_layer import EventLayer
from protocols.events import Event, ObjectReceived, ObjectSent
from protocols.fast.contract import FastMachine
from protocols.layer import Layer
from protocols.machine import Content, Group, Machine, Ports, Sender
from protocols.registry import protocol
from protocols.spec import ProtocolSpec
from protocols.storage import Put
from sim.network import Network
from tests.contract.cases import TOY_CASE
from tests.sim.probes import GROUP, Probe
from tests.sim.runs import Session
from topologies.generators import Star

NORM = protocol("norm")


class OnSender(Layer, Sender):
    """A sender that stands on another one, and a receiver of the same group beside it."""

    __slots__ = ("sender",)

    def __init__(self, spec: ProtocolSpec, ports: Ports, config: Any, node: int, group: Group, instance: int) -> None:
        super().__init__(ports)
        self.inner("beside", lambda own: spec.make_receiver(own, config, node + 1000, group), lambda event, now: None)
        self.sender = self.inner("", lambda own: spec.make_sender(own, config, node, group, instance), self._on_event)

    def submit(self, content: Content, now: float) -> int:
        """Submit to the inner sender."""
        return self.give(self.sender.submit, content, now)

    def _on_event(self, event: Event, now: float) -> None:
        self.ports.notify(event)


class OnReceiver(Layer):
    """A receiver that stands on another one."""

    __slots__ = ()

    def __init__(self, spec: ProtocolSpec, ports: Ports, config: Any, node: int, group: Group) -> None:
        super().__init__(ports)
        self.inner("", lambda own: spec.make_receiver(own, config, node, group), self._on_event, ports.accept)

    def _on_event(self, event: Event, now: float) -> None:
        self.ports.notify(event)


def layered(spec: ProtocolSpec, settings: dict[str, Any]) -> Case:
    """Return a protocol whose machines stand on those of another."""

    def make_sender(ports: Ports, config: Any, node: int, group: Group, instance: int) -> Sender:
        return OnSender(spec, ports, config, node, group, instance)

    def make_receiver(ports: Ports, config: Any, node: int, group: Group) -> Machine:
        return OnReceiver(spec, ports, config, node, group)

    return Case(ProtocolSpec(f"layered-{spec.name}", spec.config, spec.codec, make_sender, make_receiver), settings)


cases = pytest.mark.parametrize(
    "case", [layered(TOY_CASE.protocol, TOY_CASE.settings), layered(NORM, SETTINGS["norm"])], ids=str
)


@cases
@pytest.mark.parametrize("world", WORLDS)
def test_content_arrives_by_layers(case: Case, world: str) -> None:
    checks.arrives(case, WORLDS[world], 0.1)


@cases
def test_layers_keep_the_contract(case: Case) -> None:
    checks.quiet_at_the_end(case)
    checks.late_wakes_are_harmless(case)
    checks.early_wakes_change_nothing(case)
    checks.full_network_is_respected(case)
    checks.simulated_content_arrives(case)
    checks.counters_are_numbers(case)
    checks.ends_whatever_is_lost(case, randomly(0.4))
    checks.failing_sink_ends_its_object(case, "write", 0, True)


class Chain(Layer):
    """Each inner machine makes the next due when it speaks."""

    __slots__ = ("expired", "probes")

    def __init__(self, ports: Ports, count: int) -> None:
        super().__init__(ports)
        self.expired: list[float] = []
        scripts = [[(1.0, 0, 100, GROUP, None)], *([] for _ in range(count - 1))]
        self.probes = [
            self.inner(str(n), lambda own, script=script: Probe(own, script), lambda event, now, n=n: self._next(n, now))  # type: ignore[misc]
            for n, script in enumerate(scripts)
        ]

    def _next(self, number: int, now: float) -> None:
        if number + 1 < len(self.probes):
            probe = self.probes[number + 1]
            probe.script.append((now, number + 1, 100, GROUP, None))
            self.give(probe.expect, now, now)

    def expire(self, now: float) -> None:
        """Note the time."""
        self.expired.append(now)


class Speaker(Probe):
    """Notify when something is sent."""

    def say(self, *args: Any, **options: Any) -> None:
        """Send and notify."""
        super().say(*args, **options)
        self.ports.notify(ObjectSent(0))


def test_machines_that_others_make_due_are_woken_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.protocols.test_layer.Probe", Speaker)
    host = FakeHost("a")
    layer = Chain(host, 4)
    host.run(layer)
    assert layer.deadline == 1.0
    host.turn(1.0)
    assert [probe.woken for probe in layer.probes] == [[1.0]] * 4
    assert [packet.message.number for packet in host.packets] == [0, 1, 2, 3]  # type: ignore[attr-defined]
    assert layer.deadline == inf


def test_a_layer_has_a_timer_of_its_own() -> None:
    host = FakeHost("a")
    layer = Chain(host, 1)
    host.run(layer)
    host.call(lambda now: layer.set_timer(0.5))
    host.turn(0.5)
    assert (layer.expired, layer.deadline) == ([0.5], 1.0)
    host.call(lambda now: layer.set_timer(0.7))
    host.call(lambda now: layer.set_timer(2.0))
    for now in (0.7, 1.0, 2.0):
        host.turn(now)
    assert layer.expired == [0.5, 2.0]


def test_an_inner_machine_that_is_always_due_is_a_livelock() -> None:
    class Stuck(Probe):
        def wake(self, now: float) -> None:
            """Stay due."""

    host = FakeHost("a")
    layer = Layer(host)
    layer.inner("", lambda own: Stuck(own, [(1.0, 0, 100, GROUP, None)]), lambda event, now: None)
    host.run(layer)
    with pytest.raises(LivelockError):
        host.turn(1.0)


def test_inner_machines_have_random_numbers_and_records_of_their_own() -> None:
    ports = Recorder()
    layer = Layer(ports)
    own = [layer.inner(name, lambda own: Probe(own, []), lambda event, now: None) for name in ("first", "second")]
    assert len({machine.ports.rng.uniform() for machine in own} | {ports.rng.uniform()}) == 3
    host = FakeHost("a")
    layer = Layer(host)
    found: list[Any] = []

    class Reader(Probe):
        def fetched(self, ticket: int, records: Sequence[Any], now: float) -> None:
            """Keep them."""
            found.append(list(records))

    readers = [layer.inner(name, lambda own: Reader(own, []), lambda event, now: None) for name in ("first", "second")]
    host.run(layer)
    for number, reader in enumerate(readers):
        host.call(lambda now, reader=reader, number=number: reader.ports.store([Put(b"k", b"%d" % number)]))
    for reader in readers:
        host.call(lambda now, reader=reader: reader.ports.fetch())
    host.turn(0.001)
    assert found == [[Put(b"k", b"0")], [Put(b"k", b"1")]]


def test_connections_belong_to_the_inner_machine_that_made_them_or_listens() -> None:
    bench = Bench(("a", "b"))
    layers = [Layer(bench[name]) for name in ("a", "b")]

    def ignore(event: Event, now: float) -> None:
        """Do nothing."""

    callers = [layers[0].inner(name, lambda own: Caller(own, "b", 5), ignore) for name in ("one", "two")]
    answerer = layers[1].inner("", Answerer, ignore)
    for name, layer in zip(("b", "a"), reversed(layers), strict=True):
        bench[name].run(layer)
    bench.run()
    assert [list(caller.heard.values()) for caller in callers] == [[[0, 1, 2, 3, 4]]] * 2
    assert len(answerer.heard) == 2
    assert not layers[0].connections
    second = Layer(bench["a"])
    for name in ("one", "two"):
        second.inner(name, Answerer, ignore)
    with pytest.raises(UsageError, match="another machine listens"):
        second.start(0.0)


class Named(EventLayer):
    """Tell the application of received objects only, by the receiver's name for them."""

    __slots__ = ("offers",)

    def __init__(self, ports: Ports, inner: Machine) -> None:
        super().__init__(ports, inner)
        self.offers = 0

    def heard(self, event: Event, now: float) -> Sequence[Event]:
        """Rename received objects, and drop other events."""
        return (
            [ObjectReceived(event.sender, event.object_id, event.size, b"renamed")] if isinstance(event, ObjectReceived) else []
        )

    def offered(self, offer: Any) -> Any:
        """Count the offer, and take the object."""
        self.offers += 1
        return Accounted()


@pytest.mark.parametrize("engine", ["strict", "fast"])
def test_an_event_layer_keeps_the_fast_path_of_its_machine(engine: str) -> None:
    topology = Star.model_validate(
        {"kind": "star", "receivers": 40, "link": {"rate": "10Mbit", "down": {"loss": "3%"}}}
    ).build()
    plain = Session(topology, NORM, NORM.config(rate=500_000.0, grtt=0.05), engine=engine)
    told: list[Event] = []
    layers: list[Named] = []
    network = Network(topology, seed=1, engine=engine)
    makers = NORM.makers(fast=engine == "fast")
    group = Group("239.0.0.1:1")
    for number, name in enumerate(topology.hosts[1:], 2):
        host = network.host(name)
        layers.append(Named(host, makers.make_receiver(host, NORM.config(rate=500_000.0, grtt=0.05), number, group)))
        host.run(layers[-1], told.append, lambda offer: Accounted())
        assert host.machine is layers[-1].inner
        assert isinstance(host.machine, FastMachine) == (engine == "fast")
    host = network.host(topology.hosts[0])
    sender = makers.make_sender(host, NORM.config(rate=500_000.0, grtt=0.05), 1, group, 7)
    host.run(sender, lambda event: None)
    host.call(sender.submit, Content(Extent(200_000), b"name", is_file=False))
    plain.send(200_000)
    plain.network.run(60.0)
    network.run(60.0)
    assert network.fingerprint() == plain.network.fingerprint()
    assert [event.info for event in told if isinstance(event, ObjectReceived)] == [b"renamed"] * 40 == [b"renamed"] * len(told)
    assert {layer.offers for layer in layers} == {1}

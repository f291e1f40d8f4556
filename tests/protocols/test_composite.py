"""Several machines on one host: each receives its own messages and is woken on time."""

from typing import cast

import pytest

from protocols.composite import ComponentHost, CompositeMachine
from protocols.cross import CrossCodec, FlowSink, load_of
from protocols.errors import UsageError
from protocols.events import Event, ObjectSent
from protocols.machine import Group, Packet, Ports
from protocols.rng import Rng
from sim.addresses import HostPort
from sim.network import Network
from tests.sim.probes import GROUP, Probe, probe_on
from tests.support.toy import TOY
from topologies.generators import Lan

OTHER = Group("239.0.0.2:1")


def lan() -> Network:
    """Return a network of three hosts on a switch."""
    return Network(Lan.model_validate({"receivers": 2}).build(), seed=1)


def component_on(
    composite: CompositeMachine, name: str, script: list[tuple[float, int]], events: list[Event]
) -> tuple[ComponentHost, Probe]:
    """Add a probe in a component."""
    component = composite.component(name)
    probe = Probe(cast(Ports, component), [(when, number, 100, GROUP, None) for when, number in script])
    component.run(probe, events.append)
    return component, probe


def test_each_component_receives_its_messages_of_the_groups_it_joined() -> None:
    network = lan()
    composite = CompositeMachine(network.host("r1"))
    _, probe = component_on(composite, "", [], [])
    second, other = component_on(composite, "other", [], [])
    second.join(OTHER)
    sender = probe_on(network, "sender", listen=False)

    def send(now: float) -> None:
        for number, to in enumerate((GROUP, OTHER, "r1", HostPort("r1", 1), HostPort("r1", 2))):
            sender.say(number, to=to)

    network.host("sender").call(send)
    network.run()
    assert [number for _, number, _ in probe.heard] == [0, 2]
    assert [number for _, number, _ in other.heard] == [0, 1, 3]
    assert composite.counts() == {"heard": 5}


def test_components_hear_their_neighbours_and_not_themselves() -> None:
    network = lan()
    composite = CompositeMachine(network.host("r1"))
    _, probe = component_on(composite, "", [(0.5, 1)], [])
    neighbour, other = component_on(composite, "other", [], [])
    neighbour.later(1.0, lambda: neighbour.call(lambda now: other.say(2, to="r1")))
    network.run()
    assert [(number, source) for _, number, source in other.heard] == [(1, "r1")]
    assert [(number, source) for _, number, source in probe.heard] == [(2, HostPort("r1", 1))]


def test_a_neighbour_hears_what_is_sent_by_bytes_with_the_codec_of_its_port() -> None:
    network = Network(Lan.model_validate({"receivers": 2}).build(), seed=1, codec=TOY.codec)
    composite = CompositeMachine(network.host("r1"))
    first, second = (composite.component(name, CrossCodec) for name in ("", "other"))
    sink, far = FlowSink(second, 7, receipts=False), FlowSink(first, 7, receipts=False)
    second.run(sink, lambda event: None)
    first.run(far, lambda event: None)
    first.call(lambda now: first.send(Packet(load_of(7, 0, 100), 100, second.address_of("r1", 1))))
    network.run()
    assert (sink.received, far.received) == (1, 0)


def test_components_wake_at_their_deadlines() -> None:
    network = lan()
    receiver = probe_on(network, "r2")
    composite = CompositeMachine(network.host("r1"))
    _, probe = component_on(composite, "", [(0.5, 1), (2.0, 2)], [])
    _, other = component_on(composite, "other", [(1.0, 3), (1.5, 4), (2.0, 5)], [])
    network.run()
    assert (probe.woken, other.woken) == ([0.5, 2.0], [1.0, 1.5, 2.0])
    assert [(when, number) for when, number, _ in receiver.heard] == [(0.5, 1), (1.0, 3), (1.5, 4), (2.0, 2), (2.0, 5)]


def test_events_go_to_the_application_of_their_component() -> None:
    network = lan()
    composite = CompositeMachine(network.host("r1"))
    received: list[list[Event]] = [[], []]
    components = [component_on(composite, name, [], events) for name, events in zip(("", "other"), received, strict=True)]
    for number, (component, probe) in enumerate(components):
        component.call(probe.shout, number)
        component.call(probe.shout, number + 10)
    assert received == [[ObjectSent(0), ObjectSent(10)], [ObjectSent(1), ObjectSent(11)]]


def test_the_component_without_a_name_has_the_random_stream_of_the_host() -> None:
    expected = lan().host("r1").rng.uniform()
    composite = CompositeMachine(lan().host("r1"))
    other, first = (composite.component(name) for name in ("other", ""))
    assert isinstance(other.rng, Rng)
    assert other.rng.uniform() != expected
    assert first.rng.uniform() == expected


def test_a_group_is_left_when_the_last_component_leaves_it() -> None:
    network = lan()
    host = network.host("r1")
    composite = CompositeMachine(host)
    components = [component_on(composite, name, [(1.0, 7)], []) for name in ("", "other")]
    components[0][0].stop()
    assert host.endpoint.listens(GROUP, host.member)
    components[1][0].stop()
    assert not host.endpoint.listens(GROUP, host.member)
    network.run()
    assert [probe.woken for _, probe in components] == [[], []]


def test_a_component_runs_one_machine() -> None:
    composite = CompositeMachine(lan().host("r1"))
    component, probe = component_on(composite, "", [], [])
    with pytest.raises(UsageError, match="runs a machine already"):
        component.run(probe, lambda event: None)

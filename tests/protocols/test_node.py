"""A node of a sender and a receiver at one port, under the rules of the contract and with what a real host offers."""

from functools import partial

import pytest

from experiments.contract.bench import Bench
from experiments.contract.case import SETTINGS
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.losses import randomly
from protocols.batches import Assisted, RunReceiver, Selective
from protocols.events import Event, ObjectReceived
from protocols.machine import Content, Group, Machine, Ports, Sender
from protocols.node import NodeMachine
from protocols.registry import file_protocols, protocol
from protocols.snapshot import walk

GROUP = Group("all")
NAMES = ("a", "b", "c")


def meeting(name: str, loss: float) -> tuple[Bench, dict[str, NodeMachine], dict[str, list[Event]]]:
    """Run three nodes of which each sends two objects to the others; return the events of their applications, too.

    The fake hosts check the contract after every input.
    """
    spec = protocol(name)
    config = spec.config(**SETTINGS.get(name, {}))
    bench = Bench(NAMES, drop=randomly(loss, 5))

    def node(number: int) -> NodeMachine:
        def sender(ports: Ports) -> Sender:
            return spec.make_sender(ports, config, number, GROUP, 1)

        def receiver(ports: Ports) -> Machine:
            return spec.make_receiver(ports, config, number, GROUP)

        return NodeMachine(bench[NAMES[number - 1]], number, sender, receiver)

    def submit(number: int, size: int) -> None:
        place = NAMES[number - 1]
        bench[place].call(nodes[place].sender.submit, Content(Bytes(pattern(size, number))))

    nodes = {place: node(number) for number, place in enumerate(NAMES, 1)}
    told: dict[str, list[Event]] = {place: [] for place in NAMES}
    for number, place in enumerate(NAMES, 1):
        bench[place].run(nodes[place], told[place].append)
        for size in (700, 20_000 + number):
            bench[place].later(0.1 * number, partial(submit, number, size))
    bench.run(until=300.0)
    return bench, nodes, told


@pytest.mark.parametrize("name", file_protocols())
def test_each_node_receives_what_the_others_send_and_nothing_of_its_own(name: str) -> None:
    bench, _, told = meeting(name, 0.05)
    for own, place in enumerate(NAMES, 1):
        host = bench[place]
        got = [event for event in told[place] if isinstance(event, ObjectReceived)]
        others = [number for number in range(1, 4) if number != own]
        assert sorted((event.sender, event.size) for event in got) == sorted(
            (number, size) for number in others for size in (700, 20_000 + number)
        )
        for event in got:
            sink = host.sinks[event.sender, event.object_id]
            assert isinstance(sink, CheckedSink)
            assert bytes(sink.content) == pattern(event.size, event.sender)


def test_a_node_takes_what_a_real_host_offers() -> None:
    _, nodes, _ = meeting("norm", 0.0)
    node = nodes["a"]
    assert isinstance(node, RunReceiver)
    assert isinstance(node, Selective)
    assert isinstance(node, Assisted)
    # Feedback for another sender is worth nothing to the sender, but may suppress a request of the receiver.
    junk = b"\x13\x00" + bytes(30)
    assert node.is_worth_decoding(junk, "b", 301.0) == any(
        machine.is_worth_decoding(junk, "b", 301.0) for machine in node.machines() if isinstance(machine, Selective)
    )


def test_the_statistics_have_both_roles() -> None:
    _, nodes, _ = meeting("norm", 0.0)
    told = [part for _, part in walk(nodes["a"].snapshot(300.0)) if part.part == "session" and part.values]
    assert [part.states["role"] for part in told] == ["sender", "receiver"]
    assert (told[0].values["objects_sent"], told[1].values["objects_received"]) == (2, 4)

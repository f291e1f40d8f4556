"""Several machines on one host: each hears what is its own, and none is woken late."""

from typing import cast

import pytest

from protocols.errors import UsageError
from protocols.events import Event, ObjectSent
from protocols.machine import Group, Ports
from protocols.rng import Rng
from protocols.several import Part, Several
from sim.network import Network
from tests.sim.probes import GROUP, Note, Probe, probe_on
from topologies.generators import Lan

OTHER = Group("239.0.0.2:1")


def lan() -> Network:
    """Three hosts on a switch."""
    return Network(Lan.model_validate({"receivers": 2}).build(), seed=1)


def part_on(whole: Several, name: str, script: list[tuple[float, int]], heard: list[Event]) -> tuple[Part, Probe]:
    """A probe in a part of its own that takes notes below 100 when it has no name, others otherwise."""
    part = whole.part(name, lambda message: isinstance(message, Note) and (message.number < 100) == (not name))
    probe = Probe(cast(Ports, part), [(when, number, 100, GROUP, None) for when, number in script])
    part.run(probe, heard.append)
    return part, probe


def test_each_part_hears_what_it_takes_and_joined() -> None:
    network = lan()
    whole = Several(network.host("r1"))
    _, probe = part_on(whole, "", [], [])
    second, other = part_on(whole, "other", [], [])
    second.join(OTHER)
    speaker = probe_on(network, "sender", listen=False)

    def talk(now: float) -> None:
        for number in (1, 101):
            for to in (GROUP, OTHER, "r1"):
                speaker.say(number, to=to)

    network.host("sender").call(talk)
    network.run()
    # The first is in GROUP only, so it hears 1 by that and by unicast.
    assert [number for _, number, _ in probe.heard] == [1, 1]
    assert [number for _, number, _ in other.heard] == [101, 101, 101]
    assert whole.counts() == {"heard": 5}


def test_parts_wake_when_they_want_to() -> None:
    network = lan()
    listener = probe_on(network, "r2")
    whole = Several(network.host("r1"))
    _, probe = part_on(whole, "", [(0.5, 1), (2.0, 2)], [])
    _, other = part_on(whole, "other", [(1.0, 3), (1.5, 4), (2.0, 5)], [])
    network.run()
    assert (probe.woken, other.woken) == ([0.5, 2.0], [1.0, 1.5, 2.0])
    assert [(when, number) for when, number, _ in listener.heard] == [(0.5, 1), (1.0, 3), (1.5, 4), (2.0, 2), (2.0, 5)]


def test_events_go_to_the_application_of_their_part() -> None:
    network = lan()
    whole = Several(network.host("r1"))
    told: list[list[Event]] = [[], []]
    parts = [part_on(whole, name, [], heard) for name, heard in zip(("", "other"), told, strict=True)]
    for number, (part, probe) in enumerate(parts):
        part.call(probe.shout, number)
        part.call(probe.shout, number + 10)
    assert told == [[ObjectSent(0), ObjectSent(10)], [ObjectSent(1), ObjectSent(11)]]


def test_the_part_without_a_name_has_the_dice_of_the_host() -> None:
    alone = lan().host("r1").rng.uniform()
    whole = Several(lan().host("r1"))
    other, first = (whole.part(name, lambda message: True) for name in ("other", ""))
    assert isinstance(other.rng, Rng)
    assert other.rng.uniform() != alone
    assert first.rng.uniform() == alone


def test_a_group_is_left_when_the_last_part_leaves_it() -> None:
    network = lan()
    host = network.host("r1")
    whole = Several(host)
    parts = [part_on(whole, name, [(1.0, 7)], []) for name in ("", "other")]
    parts[0][0].stop()
    assert host.endpoint.listens(GROUP, host.member)
    parts[1][0].stop()
    assert not host.endpoint.listens(GROUP, host.member)
    network.run()
    assert [probe.woken for _, probe in parts] == [[], []]


def test_a_part_runs_one_machine() -> None:
    whole = Several(lan().host("r1"))
    part, probe = part_on(whole, "", [], [])
    with pytest.raises(UsageError, match="runs a machine already"):
        part.run(probe, lambda event: None)

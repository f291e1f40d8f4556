"""A role with options: a repeater on a router carries datagrams that may not be forwarded into the network that it is told."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import ConfigError

MODULE = '''
from dataclasses import dataclass, replace

from protocols.datagram import PROTOCOL as DATAGRAM
from protocols.datagram.wire import OVERHEAD
from protocols.machine import Group, Machine, Packet
from protocols.roles import Role
from protocols.settings import check, setting


@dataclass(frozen=True, slots=True)
class RepeaterOptions:
    """Where it repeats, and what it keeps."""

    lan: str = setting("", "network", help="network to repeat in")
    ring: int = setting(8, "count", 1, 1000, help="datagrams that it repeats")

    def __post_init__(self):
        check(self)


class Repeater(Machine):
    """Repeats the first `ring` datagrams from other networks in the network `lan`."""

    def __init__(self, ports, context):
        super().__init__(ports)
        self._context, self._left = context, context.options.ring

    def start(self, now):
        for network in self._context.networks:
            if network != self._context.options.lan:
                self.ports.join(Group(self._context.group.name, network))
        if str(self.ports.address_of("g.host")) != str(self._context.address):
            self.ports.fail(f"told {self._context.address}")

    def wake(self, now):
        pass

    def receive(self, message, source, to, now):
        self._left -= 1
        if self._left >= 0:
            lan = Group(self._context.group.name, self._context.options.lan)
            self.ports.send(Packet(message, OVERHEAD + message.length, lan))

    def counts(self):
        return {}


PROTOCOL = replace(DATAGRAM, name="repeated", roles={**DATAGRAM.roles, "repeater": Role(Repeater, options=RepeaterOptions)})
'''
SCENARIO: dict[str, Any] = {
    "name": "repeated",
    "topology": {
        "kind": "graph",
        "nodes": {"p": {}, "w": {"kind": "switch"}, "g": {"kind": "router"}, "l": {"kind": "switch"}, "r": {}, "q": {}},
        "links": [{"ends": ends} for ends in (["p", "w"], ["q", "w"], ["w", "g"], ["g", "l"], ["l", "r"])],
    },
    "nodes": {"g": {"role": "repeater", "lan": "l", "ring": 4}},
    "workload": [
        {"kind": "publish", "hosts": ["p"], "to": "topic:t", "size": 500, "rate": "20/s", "at": "200ms", "count": 10, "ttl": 1},
        {"kind": "subscribe", "hosts": ["q", "r"], "to": "topic:t"},
    ],
    "duration": "20s",
}


@pytest.fixture
def scenario(tmp_path: Path) -> dict[str, Any]:
    """Return the values of a scenario with the protocol of a module."""
    path = tmp_path / "repeater.py"
    path.write_text(MODULE)
    return {**deepcopy(SCENARIO), "protocol": {"module": str(path), "rate": "5Mbit"}}


@pytest.mark.parametrize("world", ["sim", pytest.param("emu", marks=pytest.mark.emu)])
def test_a_role_is_told_its_options_and_networks(scenario: dict[str, Any], world: Any) -> None:
    result = run(parse(scenario, "scenario"), world)
    assert result.messages is not None
    assert {row["name"]: row["delivered"] for row in result.messages["subscriptions"]} == {"q": 10, "r": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lan": "m"}, r"nodes.g.lan: value 'm' is not allowed; one of w, l"),
        ({"lan": 5}, r"nodes.g.lan: value 5 is not allowed; the name of a network"),
        ({"lan": "l", "rings": 5}, r"nodes.g.rings: value 5 is not allowed; unknown key, known here: role, lan, ring"),
        ({"lan": "l", "ring": 0}, r"nodes.g.ring: value 0 is not allowed; a whole number from 1 to 1000"),
    ],
)
def test_wrong_options_are_refused_in_one_line(scenario: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse({**scenario, "nodes": {"g": {"role": "repeater", **options}}}, "scenario")
    assert "\n" not in str(caught.value)


def test_a_host_has_no_networks_to_name(scenario: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"nodes.q.lan: value 'w' is not allowed; only a router has several networks"):
        parse({**scenario, "nodes": {"q": {"role": "repeater", "lan": "w"}}}, "scenario")

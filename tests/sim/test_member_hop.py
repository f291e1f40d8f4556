"""Multicasts that not all members of a counted group receive use the links of those that do."""

from typing import Any

import pytest

from protocols.machine import Group
from sim.network import Network
from tests.sim.probes import GROUP, probe_on
from topologies.inline import Inline

LINKS: list[dict[str, Any]] = [
    {},
    {"overhead": "ethernet"},
    {"delay": {"model": "uniform", "least": "1ms", "most": "2ms"}},
    {"duplicate": "50%"},
    {"mtu": 500},
    {"queue": {"model": "droptail", "bytes": 5000}},
    {"queue": {"model": "red"}},
]
ENGINES = pytest.mark.parametrize("engine", ["fast", "strict"])
Heard = list[list[tuple[float, int, Any]]]


def network(link: dict[str, Any], engine: str, *, pruning: bool = True, separate: bool = False, hub: bool = False) -> Network:
    """Return a network of host `a` and hosts `c1` to `c3`, a counted group or `separate`; group GROUP is without `c3`."""
    nodes: dict[str, Any] = {f"c{n}": {} for n in (1, 2, 3)} if separate else {"c": {"count": 3}}
    rate: dict[str, Any] = {} if hub else {"rate": "8Mbit", "queue": 5}
    switch = {"kind": "switch"} | ({"hub": True, "rate": "80Mbit"} if hub else {})
    links = [{"ends": ["a", "s"]}, *({"ends": ["s", name], **rate, **link} for name in nodes)]
    data = {"nodes": {"a": {}, "s": switch, **nodes}, "links": links, "multicast": {"pruning": pruning}}
    built = Network(Inline.model_validate(data).build(), seed=1, engine=engine)
    built.confine(GROUP, ["a", "c1", "c2"])
    return built


def load(built: Network) -> Heard:
    """Send from `a` to the group and to c3, to each with 0.7 of the rate of a link; return what c1 to c3 hear."""
    probes = [probe_on(built, f"c{n}", listen=n < 3) for n in (1, 2, 3)]
    multicasts = [(n * 1.37e-3, n, 958, GROUP, n) for n in range(100)]
    unicasts: list[Any] = [(n * 1.37e-3 + 1e-5, n, 958, "c3", 1000 + n) for n in range(100)]
    probe_on(built, "a", [*multicasts, *unicasts], listen=False)
    built.run()
    return [probe.heard for probe in probes]


def carried(built: Network) -> tuple[int, int]:
    """Return how many packets were offered to the links to the members, and how many their queues dropped."""
    rows = [row for row in built.links() if row.near == "s" and row.far != "a"]
    return sum(row.offered for row in rows), sum(row.dropped for row in rows)


@ENGINES
@pytest.mark.parametrize("link", LINKS[:2], ids=str)
def test_members_that_take_no_part_hear_as_separate_hosts_do(link: dict[str, Any], engine: str) -> None:
    group, separate = network(link, engine), network(link, engine, separate=True)
    assert load(group) == load(separate)
    assert carried(group) == carried(separate) == (300, 0)


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_the_engines_agree_where_not_all_members_take_part(link: dict[str, Any]) -> None:
    networks = [network(link, engine) for engine in ("fast", "strict")]
    heard = [load(built) for built in networks]
    assert heard[0] == heard[1]
    assert [carried(built)[0] for built in networks] == [300, 300]


@ENGINES
def test_a_member_that_sends_gets_no_copy(engine: str) -> None:
    built = network({}, engine)
    first, second = (probe_on(built, name) for name in ("c1", "c2"))
    built.host("c1").call(lambda now: first.say_all(range(5)))
    built.run()
    assert carried(built)[0] == len(second.heard) == 5
    assert first.heard == []


@ENGINES
def test_without_pruning_and_at_hubs_all_members_get_copies(engine: str) -> None:
    for options in ({"pruning": False}, {"hub": True}):
        built = network({}, engine, **options)
        load(built)
        assert carried(built)[0] == 400


@ENGINES
def test_other_groups_are_not_confined(engine: str) -> None:
    built = network({}, engine)
    other = Group("239.0.0.2:1")
    built.host("c3").join(other)
    probe_on(built, "a", [(0.0, 1, 958, other, 1)], listen=False)
    built.run()
    assert carried(built)[0] == 3

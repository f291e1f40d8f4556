"""A watched run has the same results, and reports to watchers agree with them."""

from collections import Counter
from functools import partial
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.registry import protocol
from sim.watch import REASONS, WatchedNetwork
from tests.sim.looks import Notes, watched
from tests.sim.test_fingerprint import ANY, PROTOCOLS, STAR, TOPOLOGIES, fingerprint

NORM = protocol("norm")
NARROW = {"kind": "star", "receivers": 3, "trunk": {}, "link": {"rate": "4Mbit", "queue": 3, "down": {"loss": "5%"}}}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_watched_run_has_the_same_fingerprint(name: str) -> None:
    @settings(deadline=None, max_examples=12, derandomize=True)
    @given(TOPOLOGIES, st.integers(0, 3), st.sampled_from([1400, 30_000]))
    def check(written: dict[str, Any], seed: int, size: int) -> None:
        session = watched(ANY.validate_python(written).build(), PROTOCOLS[name], [Notes()], seed=seed, size=size)
        assert session.network.fingerprint() == fingerprint(written, name, seed=seed, size=size)

    check()


@pytest.mark.parametrize("written", [STAR, NARROW])
def test_fates_agree_with_the_counts_of_the_links(written: dict[str, Any]) -> None:
    notes = Notes()
    network = watched(ANY.validate_python(written).build(), NORM, [notes]).network
    lost, dropped, offered = Counter[str](), Counter[str](), Counter[str]()
    for passage in notes.passages:
        link = "-".join(passage.ends)
        offered[link] += len(passage.fates)
        lost[link] += sum(fate.reason == REASONS["lost"] for fate in passage.fates)
        dropped[link] += sum(fate.reason == REASONS["dropped"] for fate in passage.fates)
    for counts in network.links():
        link = f"{counts.near}-{counts.far}"
        assert (offered[link], lost[link], dropped[link]) == (counts.offered, counts.lost, counts.dropped)
    assert sum(lost.values()) > 0


def test_what_arrives_at_hosts_is_what_machines_are_handed() -> None:
    notes = Notes()
    network = watched(ANY.validate_python(STAR).build(), NORM, [notes]).network
    hosts, end = frozenset(network.topology.hosts), network.env.now
    times = [fate.when for passage in notes.passages for fate in passage.fates if fate.node in hosts and fate.when < inf]
    assert sum(when < end for when in times) <= network.deliveries <= sum(when <= end for when in times)


class Keeping:
    """A link without a report when a packet is offered, which delivers each packet at its time of arrival."""

    def __init__(self, link: Any, network: Any) -> None:
        self.link = link
        self.network = network

    def __getattr__(self, name: str) -> Any:
        return getattr(self.link, name)

    def carry(self, flight: Any, now: float, landings: Any) -> None:
        """Take a packet at the near end."""
        mine: dict[float, Any] = {}
        self.link.carry(flight, now, mine)
        for when, places in mine.items():
            for place, out in places:
                self.network.later(when, partial(place.arrive, flight, out, when))


@pytest.mark.parametrize("name", ["toy", "norm"])
def test_links_that_keep_packets_are_seen_when_they_let_go(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def arrivals(notes: Notes) -> Counter[tuple[int, str, float]]:
        known = [(passage.number, fate.node, fate.when) for passage in notes.passages for fate in passage.fates]
        late = [(passage.number, fate.node, fate.when) for passage, fate in notes.late]
        return Counter((number, node, when) for number, node, when in known + late if node[0] == "r" and when < 0.2)

    calm = {"kind": "star", "receivers": 4, "trunk": {"down": {"loss": "10%"}}, "link": {"rate": "10Mbit", "delay": "5ms"}}
    plain, kept = Notes(), Notes()
    watched(ANY.validate_python(calm).build(), PROTOCOLS[name], [plain])
    begin = kept.begin

    def keeping(network: WatchedNetwork) -> None:
        tap: Any = network._switches["s1"].links["r"]
        tap.link = Keeping(tap.link, network)
        begin(network)

    monkeypatch.setattr(kept, "begin", keeping)
    watched(ANY.validate_python(calm).build(), PROTOCOLS[name], [kept])
    assert kept.late
    assert arrivals(kept) == arrivals(plain)


RICH = {
    "kind": "star",
    "receivers": 5,
    "trunk": {"rate": "700kbit", "delay": "5ms", "queue": {"model": "codel"}},
    "link": {
        "rate": "4Mbit",
        "delay": {"model": "normal", "mean": "5ms", "sd": "1ms"},
        "down": {"loss": "3%", "corrupt": "2%"},
    },
}


SEVERAL_GROUPS = ("fjm",)
"""Protocols with groups that not all hosts join: what comes to the others is not delivered."""


@pytest.mark.parametrize("name", PROTOCOLS)
def test_links_that_do_more_are_watched_too(name: str) -> None:
    notes = Notes()
    network = watched(ANY.validate_python(RICH).build(), PROTOCOLS[name], [notes], size=100_000).network
    assert network.fingerprint() == fingerprint(RICH, name, size=100_000)
    end, hosts = network.env.now, frozenset(network.topology.hosts)
    fates = [fate for passage in notes.passages for fate in passage.fates] + [fate for _, fate in notes.late]
    came = [fate.when for fate in fates if fate.node in hosts and fate.when < inf]
    least = 0 if name in SEVERAL_GROUPS else sum(when < end for when in came)
    assert least <= network.deliveries <= sum(when <= end for when in came)
    (counts,) = [counts for counts in network.links() if (counts.near, counts.far) == ("s1", "r")]
    missed = Counter(fate.reason for fate in fates if fate.node[0] == "r" and fate.reason)
    assert missed.total() == counts.lost + counts.corrupt > 0
    assert any(fate.node == "s1" for _, fate in notes.late)


def test_packets_keep_their_number_on_all_their_links() -> None:
    notes = Notes()
    watched(ANY.validate_python(STAR).build(), NORM, [notes])
    kinds = {number: packet.message.kind for _, _, packet, number in notes.packets}
    assert list(kinds) == list(range(1, len(notes.packets) + 1))
    assert all(passage.flight.message.kind == kinds[passage.number] for passage in notes.passages)


def test_decisions_and_events_are_reported_with_their_host() -> None:
    notes = Notes()
    session = watched(ANY.validate_python(STAR).build(), NORM, [notes])
    names = Counter(name for _, _, name, _ in notes.decisions)
    asked = sum(machine["nacks_sent"] > 0 for machine in map(_counts, session.network.fabric.hosts[1:]))
    assert names["nack_due"] >= asked > 0
    assert {host for _, host, event in notes.events if type(event).__name__ == "ObjectReceived"} == set(session.received)
    assert notes.ended == [session.network.env.now]


def test_a_host_without_watchers_has_no_trace_port() -> None:
    from tests.sim.runs import Session

    session = Session(ANY.validate_python(STAR).build(), NORM, NORM.config())
    assert session.host.trace is None


def _counts(host: Any) -> dict[str, int]:
    found: dict[str, int] = host.machine.counts()
    return found

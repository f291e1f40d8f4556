"""Links with everything in the simulator: one by one and in a group, with objects and with bytes."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from protocols.registry import protocol
from sim.damaging_links import DamagingLinkGroup
from sim.impaired_link import ImpairedLink, ImpairedLinkGroup
from sim.link import Link, LinkGroup
from sim.network import Network
from sim.varying_delays import VaryingDelayGroup
from tests.sim.probes import GROUP, probe_on
from tests.sim.runs import Session
from tests.sim.test_fingerprint import fingerprint
from tests.sim.test_link import TALK, heard, plain_star, star
from topologies.generators import AnyTopology
from topologies.queues import Codel, DropTail, Priority
from topologies.spec import LinkSpec, Topology

ANY: TypeAdapter[Any] = TypeAdapter(AnyTopology)
RICH: dict[str, Any] = {
    "kind": "star",
    "receivers": 4,
    "trunk": {"rate": "10Mbit", "delay": {"model": "normal", "mean": "5ms", "sd": "1ms"}, "queue": {"model": "red"}},
    "link": {
        "rate": "8Mbit",
        "delay": {"model": "pareto", "least": "1ms", "mean": "2ms"},
        "queue": {"model": "codel"},
        "mtu": 500,
        "duplicate": "1%",
        "corrupt": "0.5%",
        "down": {"loss": {"model": "gilbert-elliott", "burst": 3, "gap": 97}},
    },
}


@settings(deadline=None, max_examples=40)
@given(TALK)
def test_a_counted_group_behaves_as_its_members_would_one_by_one(talk: list[tuple[float, str, str, int]]) -> None:
    for written, model in (
        ({"model": "codel", "target": 1.0, "interval": 3.0, "packets": 4}, Codel(target=1.0, interval=3.0, packets=4)),
        ({"model": "droptail", "bytes": 700}, DropTail(bytes=700)),
        ({"model": "priority", "packets": 4}, Priority(packets=4)),
    ):
        spec = LinkSpec(rate=100.0, delay=0.25, discipline=model, mtu=200)
        grouped = heard(star(4, rate=800, delay=0.25, queue=written, mtu=200), talk)
        assert grouped == heard(plain_star(4, spec), talk)


@pytest.mark.parametrize(("is_uniform", "kind"), [(True, DamagingLinkGroup), (False, ImpairedLinkGroup)])
@pytest.mark.parametrize("loss", ["0%", "10%"])
def test_links_without_impairments_leave_the_fingerprint_of_plain_ones(
    monkeypatch: pytest.MonkeyPatch, loss: str, is_uniform: bool, kind: type
) -> None:
    link = {"rate": "8Mbit", "delay": "3ms", "queue": 6, "loss": loss}
    written = {"kind": "star", "receivers": 30, "trunk": {"rate": "10Mbit", "delay": "1ms"}, "link": link}
    plain = [fingerprint(written, name) for name in ("toy", "norm")]
    monkeypatch.setattr(LinkSpec, "plain", False)
    monkeypatch.setattr(LinkSpec, "is_uniform", is_uniform)
    network = Network(ANY.validate_python(written).build(), seed=1)
    assert isinstance(network.inlets("r1")[0], kind)
    assert isinstance(network.inlets("sender")[0], ImpairedLink)
    assert [fingerprint(written, name) for name in ("toy", "norm")] == plain


LINKS = st.fixed_dictionaries(
    {"rate": st.sampled_from(["10Mbit", "2Mbit"]), "duplicate": st.sampled_from(["0%", "3%"])},
    optional={
        "delay": st.fixed_dictionaries(
            {
                "model": st.just("uniform"),
                "least": st.just("1ms"),
                "most": st.just("9ms"),
                "order": st.sampled_from(["fifo", "free"]),
            }
        ),
        "queue": st.sampled_from([{"model": name} for name in ("codel", "red")] + [{"model": "droptail", "bytes": "9kB"}]),
        "corrupt": st.just("1%"),
        "mtu": st.just(600),
        "loss": st.sampled_from(
            [{"model": "gilbert-elliott", "burst": 3, "gap": 30}, {"model": "periodic", "every": 9, "shift": True}]
        ),
    },
)


@pytest.mark.parametrize("name", ["toy", "norm"])
def test_bytes_objects_and_the_strict_engine_leave_the_same_fingerprint(name: str) -> None:
    @settings(deadline=None, max_examples=15, derandomize=True)
    @given(LINKS, LINKS, st.integers(0, 3), st.sampled_from([1400, 30_000]))
    @example(RICH["trunk"], RICH["link"], 1, 60_000)
    def check(trunk: dict[str, Any], link: dict[str, Any], seed: int, size: int) -> None:
        written = {"kind": "star", "receivers": 4, "trunk": trunk, "link": link}
        objects = fingerprint(written, name, seed=seed, size=size)
        assert fingerprint(written, name, seed=seed, size=size, wire=True) == objects
        assert fingerprint(written, name, seed=seed, size=size, engine="strict") == objects

    check()


def test_links_are_plain_until_something_else_is_asked_of_them() -> None:
    def kinds(**link: Any) -> tuple[type, type]:
        network = Network(star(3, **link), seed=1)
        return type(network.inlets("r1")[0]), type(network.host("r1").endpoint.member_uplink(0))

    assert kinds(rate=800, delay=1, queue=3, loss={"model": "gilbert-elliott", "burst": 2, "gap": 9}) == (LinkGroup, Link)
    for damaging in ({"duplicate": 0.1}, {"corrupt": 0.1}, {"bit_errors": 1e-7}, {"mtu": 576}):
        assert kinds(**damaging) == (DamagingLinkGroup, ImpairedLink)
    jitter = {"model": "uniform", "least": "1ms", "most": "2ms"}
    assert kinds(delay=jitter) == (VaryingDelayGroup, ImpairedLink)
    for other in ({"loss": {"model": "scripted", "drops": []}}, {"queue": {"model": "red"}}):
        assert kinds(**other, delay=jitter) == (ImpairedLinkGroup, ImpairedLink)


def test_what_becomes_of_packets_is_counted() -> None:
    topology: Topology = star(
        5,
        rate=8000,
        down={"loss": "20%", "duplicate": "10%", "corrupt": "10%", "queue": {"model": "red", "ecn": True, "weight": 1}},
    )
    network = Network(topology, seed=1)
    probe_on(network, "sender", [(0.05 * n, n, 58, GROUP, n) for n in range(1000)], listen=False)
    probes = [probe_on(network, f"r{n}") for n in range(1, 6)]
    network.run()
    down = next(link for link in network.links() if (link.near, link.far) == ("s1", "r"))
    assert min(down.lost, down.corrupt, down.marked, down.duplicated, down.dropped) > 0
    arrived = sum(len(probe.heard) for probe in probes)
    assert arrived == down.offered - down.dropped - down.lost - down.corrupt + down.duplicated
    missed = sum(network.lost(f"r{n}") for n in range(1, 6))
    assert missed == down.dropped + down.lost + down.corrupt


def test_a_scripted_drop_on_a_shared_link_is_repaired_for_all() -> None:
    script = {"model": "scripted", "drops": [{"kind": "data", "number": [2, 3]}, {"kind": "nack", "number": 1}]}
    written = {"kind": "star", "receivers": 3, "trunk": {"rate": "10Mbit", "delay": "1ms", "down": {"loss": script}}}
    norm = protocol("norm")
    session = Session(ANY.validate_python(written).build(), norm, norm.config())
    session.send(30_000)
    session.run()
    assert [len(events) for events in session.received.values()] == [1, 1, 1]
    (trunk,) = (link for link in session.network.links() if (link.near, link.far) == ("sender", "s1"))
    assert trunk.lost == 2

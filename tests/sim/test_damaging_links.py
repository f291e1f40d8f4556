"""Groups of links that damage, duplicate and fragment packets do so as each link would alone, drawn for all at once."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from protocols.machine import Address
from protocols.rng import extend, unit
from sim.damaging_links import DamagingLinkGroup
from sim.impaired_link import ImpairedLinkGroup
from sim.network import Network
from sim.varying_delays import VaryingDelayGroup
from tests.sim.probes import GROUP, probe_on
from tests.sim.test_fingerprint import fingerprint
from tests.sim.test_link import star
from topologies.draws import FEW, member_keys
from topologies.generators import AnyTopology
from topologies.group_effects import GroupEffect
from topologies.line import CONTENT, CONTROL, CORRUPTION, DUPLICATE, FRAGMENTS
from topologies.spec import LinkSpec

ANY: TypeAdapter[Any] = TypeAdapter(AnyTopology)
EFFECTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "duplicate": st.sampled_from(["3%", "40%"]),
        "corrupt": st.sampled_from(["2%", "30%"]),
        "bit_errors": st.sampled_from([1e-6, 1e-4]),
        "mtu": st.sampled_from([100, 200]),
        "queue": st.sampled_from([0, 2]),
        "loss": st.sampled_from(
            [
                "20%",
                {"model": "content", "p": 0.2},
                {"model": "gilbert-elliott", "burst": 3, "gap": 9},
                {"model": "periodic", "every": 3},
            ]
        ),
    },
)
DELAYS: list[dict[str, Any]] = [
    {"model": "uniform", "least": "100ms", "most": "900ms"},
    {"model": "normal", "mean": "300ms", "sd": "200ms", "order": "free"},
    {"model": "pareto", "least": "50ms", "mean": "300ms", "order": "free"},
    {"model": "trace", "samples": ["300ms", "10ms", "700ms"]},
    {"model": "trace", "samples": ["300ms", "10ms", "700ms"], "order": "free"},
]
TALK = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.2, 0.7, 4.0]),
        st.sampled_from(["sender", "r1", "r2", "r3"]),
        st.sampled_from(["group", "group", "group", "sender", "r1", "r2"]),
        st.sampled_from([58, 158, 358]),
        st.sampled_from([None, 0, 1, 255, 256]),
    ),
    min_size=1,
    max_size=25,
)


def outcome(count: int, link: dict[str, Any], talk: list[tuple[float, str, str, int, int | None]], engine: str) -> Any:
    """Return what each host received, and when, and the counts of all links."""
    network = Network(star(count, rate=800, **{"delay": 0.25, **link}), seed=1, engine=engine)
    scripts: dict[str, list[tuple[float, int, int, Address, int | None]]] = {}
    now = 0.0
    for number, (gap, who, to, size, identity) in enumerate(talk):
        now += gap
        if to != who:
            scripts.setdefault(who, []).append((now, number, size, GROUP if to == "group" else to, identity))
    names = ["sender", *(f"r{n}" for n in range(1, count + 1))]
    probes = {name: probe_on(network, name, scripts.get(name, ())) for name in names}
    network.run()
    heard = {name: sorted(probe.heard, key=lambda line: line[:2]) for name, probe in probes.items()}
    return heard, network.links(), [network.lost(name) for name in names]


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.sampled_from([4, FEW + 6]), EFFECTS, TALK)
@example(30, {"duplicate": "40%", "corrupt": "30%", "mtu": 100, "loss": "20%"}, [(0.0, "sender", "group", 358, 0)] * 9)
def test_every_packet_has_the_fate_it_has_on_links_of_their_own(
    count: int, link: dict[str, Any], talk: list[tuple[float, str, str, int, int | None]]
) -> None:
    assert outcome(count, link, talk, "fast") == outcome(count, link, talk, "strict")


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.sampled_from([4, FEW + 6]), EFFECTS, st.sampled_from(DELAYS), TALK)
def test_every_packet_has_the_delay_it_has_on_links_of_their_own(
    count: int, link: dict[str, Any], delay: dict[str, Any], talk: list[tuple[float, str, str, int, int | None]]
) -> None:
    assert outcome(count, {**link, "delay": delay}, talk, "fast") == outcome(count, {**link, "delay": delay}, talk, "strict")


@pytest.mark.parametrize(
    ("number", "bound", "above"), [(CORRUPTION, 0.3, False), (DUPLICATE, 0.01, False), (FRAGMENTS, 0.9, True)]
)
@pytest.mark.parametrize("count", [3, 100])
def test_draws_are_those_of_single_links(count: int, number: int, bound: float, above: bool) -> None:
    keys = member_keys(7, count)
    effect = GroupEffect(keys, number, above=above)
    effect.bound = bound

    def hit(*path: int) -> list[int]:
        found = []
        for member, key in enumerate(keys.tolist()):
            for word in path:
                key = extend(key, word)
            if (unit(key, number) >= bound) is above:
                found.append(member)
        return found

    for identity in [0, 1, 255, 256, 5 << 40]:
        assert list(effect.losers(identity)) == hit(CONTENT, identity, 1)
        assert list(effect.losers(identity)) == hit(CONTENT, identity, 2)
    assert [list(effect.losers(None)) for _ in range(3)] == [hit(CONTROL, ordinal) for ordinal in (1, 2, 3)]


@pytest.mark.parametrize("name", ["toy", "norm", "n2", "srm"])
def test_fingerprints_are_those_of_lines_and_of_the_strict_engine(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    link = {"rate": "8Mbit", "delay": "3ms", "mtu": 900, "duplicate": "1%", "corrupt": "1%", "bit_errors": 1e-6, "loss": "2%"}
    written = {"kind": "star", "receivers": 30, "trunk": {"rate": "10Mbit", "delay": "1ms"}, "link": link}
    assert isinstance(Network(ANY.validate_python(written).build(), seed=1).inlets("r1")[0], DamagingLinkGroup)
    together = fingerprint(written, name)
    assert fingerprint(written, name, engine="strict") == together
    monkeypatch.setattr(LinkSpec, "is_uniform", False)
    assert isinstance(Network(ANY.validate_python(written).build(), seed=1).inlets("r1")[0], ImpairedLinkGroup)
    assert fingerprint(written, name) == together


@pytest.mark.parametrize("order", ["fifo", "free"])
@pytest.mark.parametrize("name", ["toy", "norm", "n2", "srm"])
def test_varying_delays_leave_the_fingerprint_of_lines_and_of_the_strict_engine(
    monkeypatch: pytest.MonkeyPatch, name: str, order: str
) -> None:
    delay = {"model": "normal", "mean": "6ms", "sd": "2ms", "order": order}
    link = {"rate": "8Mbit", "delay": delay, "mtu": 900, "duplicate": "1%", "corrupt": "1%", "loss": "2%"}
    written = {"kind": "star", "receivers": 30, "trunk": {"rate": "10Mbit", "delay": "1ms"}, "link": link}
    assert isinstance(Network(ANY.validate_python(written).build(), seed=1).inlets("r1")[0], VaryingDelayGroup)
    together = fingerprint(written, name)
    assert fingerprint(written, name, engine="strict") == together
    monkeypatch.setattr(LinkSpec, "is_uniform", False)
    assert isinstance(Network(ANY.validate_python(written).build(), seed=1).inlets("r1")[0], ImpairedLinkGroup)
    assert fingerprint(written, name) == together

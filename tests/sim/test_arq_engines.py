"""The fast machines of A, N1, N2 and SRM leave the fingerprints of the plain ones, with several objects, senders and faults."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.run import run
from experiments.scenario.scenario import parse
from experiments.search.plans import random_plan
from protocols.rng import Rng, key_of

PROTOCOLS = ("a", "n1", "n2", "srm")
UP = st.sampled_from(["0%", "0%", "3%"])
LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "100Mbit", "5Mbit"]),
        "delay": st.sampled_from(["0ms", "1ms", "20ms"]),
        "queue": st.sampled_from([None, None, 30]),
        "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "1%", "4%", "20%"])}),
        "up": st.fixed_dictionaries({"loss": UP}),
    }
)
TRUNKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "20Mbit", "2Mbit"]),
        "delay": st.sampled_from(["0ms", "5ms"]),
        "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "0%", "2%"])}),
        "up": st.fixed_dictionaries({"loss": UP}),
    }
)
NETWORKS = st.one_of(
    st.fixed_dictionaries({"kind": st.just("star"), "receivers": st.integers(4, 40), "trunk": TRUNKS, "link": LINKS}),
    st.fixed_dictionaries(
        {"kind": st.just("chain"), "switches": st.just(2), "receivers": st.just(6), "trunk": TRUNKS, "link": LINKS}
    ),
)
OBJECTS = st.lists(
    st.tuples(st.sampled_from([0, 1, 1400, 20_000, 90_000]), st.sampled_from(["0s", "10ms", "80ms", "1s"])),
    min_size=1,
    max_size=4,
)
PARAMETERS = st.fixed_dictionaries(
    {"rate": st.sampled_from(["1Mbit", "8Mbit"]), "timeout": st.sampled_from([0.03, 0.25]), "robust": st.sampled_from([2, 20])}
)
GUESTS = st.sampled_from([[], [], [{"hosts": ["LAST"], "join": "60ms"}], [{"hosts": ["LAST"], "leave": "90ms"}]])


def scenario(network: dict[str, Any], protocol: dict[str, Any], work: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a scenario of at most eight seconds."""
    common = {"name": "arq", "topology": network, "protocol": protocol, "workload": work, "duration": "8s"}
    return {**common, **more}


def fingerprints(written: dict[str, Any], *ways: dict[str, Any]) -> set[str | None]:
    """Return the fingerprints of the runs in these ways."""
    return {run(parse(written | way, "arq")).fingerprint for way in ways}


FAST, STRICT, BYTES = {"engine": "fast"}, {"engine": "strict"}, {"wire": "bytes"}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_several_objects_and_senders(name: str) -> None:
    @settings(deadline=None, max_examples=14, derandomize=True)
    @given(NETWORKS, PARAMETERS, OBJECTS, st.integers(0, 2**32), st.booleans(), GUESTS)
    def check(
        network: dict[str, Any], parameters: dict[str, Any], objects: Any, seed: int, two: bool, guests: list[dict[str, Any]]
    ) -> None:
        work: list[dict[str, Any]] = [{"size": size, "at": at} for size, at in objects]
        last = "r2_6" if network["kind"] == "chain" else f"r{network['receivers']}"
        if two:
            work.append({"from": "r1_1" if network["kind"] == "chain" else "r1", "size": 30_000, "at": "40ms"})
        visitors = [{**guest, "hosts": [last]} for guest in guests]
        written = scenario(network, {"name": name, **parameters}, work, seed=seed, receivers=visitors)
        assert len(fingerprints(written, FAST, STRICT)) == 1

    check()


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_repairs_soon_and_late_after_their_requests(name: str) -> None:
    times = {"gather": st.sampled_from([0.0, 0.001, 0.02, 0.08]), "hold": st.sampled_from([0.0, 0.01, 0.2])}
    if name == "n2":
        times["window"] = st.sampled_from([0.0, 0.005, 0.05])

    @settings(deadline=None, max_examples=14, derandomize=True)
    @given(NETWORKS, PARAMETERS, st.fixed_dictionaries(times), st.sampled_from([200, 1400]), st.integers(0, 2**32))
    def check(network: dict[str, Any], parameters: dict[str, Any], more: dict[str, float], segment: int, seed: int) -> None:
        work: list[dict[str, Any]] = [{"size": 90_000}, {"size": 40_000, "at": "80ms"}]
        protocol = {"name": name, "segment": segment, **parameters, **more}
        assert len(fingerprints(scenario(network, protocol, work, seed=seed), FAST, STRICT)) == 1

    check()


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("number", range(5))
def test_random_faults(name: str, number: int) -> None:
    link = {"rate": "20Mbit", "delay": "2ms", "down": {"loss": "3%"}, "up": {"loss": "1%"} if number % 2 else {}}
    network = {"kind": "star", "receivers": 9, "trunk": {"rate": "50Mbit", "delay": "1ms"}, "link": link}
    protocol = {"name": name, "rate": "4Mbit", "timeout": "40ms"}
    written = scenario(network, protocol, [{"size": 150_000}, {"size": 20_000, "at": "300ms"}], seed=number)
    written["faults"] = random_plan(Rng(key_of(21, number)), parse(written, "arq").build_topology(), 1.0)
    assert len(fingerprints(written, FAST, STRICT, BYTES)) == 1


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_file_that_was_not_opened_when_its_sender_restarted_has_its_bytes(name: str) -> None:
    # The first file is lost as a whole before the crash, and so are the first packets of the second one.
    network = {"kind": "star", "receivers": 2, "trunk": {"delay": "1ms"}, "link": {"delay": "1ms"}}
    written = scenario(network, {"name": name, "rate": "1Mbit", "segment": 400}, [{"size": 1000}, {"size": 20_000}])
    written["faults"] = [
        {"at": "0s", "flap": ["s1", "r1"], "for": "60ms"},
        {"at": "100ms", "crash": "sender", "for": "1ms"},
    ]
    results = [run(parse(written | way, "arq")) for way in (FAST, STRICT, BYTES)]
    assert all(result.ok for result in results)
    assert len({result.fingerprint for result in results}) == 1


@pytest.mark.parametrize("name", PROTOCOLS)
def test_two_hundred_receivers_behind_a_slow_link(name: str) -> None:
    trunk = {"rate": "3Mbit", "delay": "3ms"}
    network = {"kind": "star", "receivers": 200, "trunk": trunk, "link": {"delay": "2ms", "down": {"loss": "2%"}}}
    written = scenario(network, {"name": name, "rate": "2Mbit"}, [{"size": 50_000}], seed=5, duration="2s")
    assert len(fingerprints(written, FAST, STRICT)) == 1


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("seed", range(3))
def test_receivers_whose_processors_are_done_with_a_packet_at_different_times(name: str, seed: int) -> None:
    link = {"rate": "20Mbit", "delay": "3ms", "down": {"loss": "5%"}}
    network = {"kind": "star", "receivers": 5, "link": link, "nodes": {"r": {"cpu": "997us"}}}
    written = scenario(network, {"name": name, "rate": "8Mbit", "segment": 1000}, [{"size": 30_000}], seed=seed)
    assert len(fingerprints(written, FAST, STRICT)) == 1


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("seed", range(3))
def test_outages_in_which_more_is_lost_than_is_requested_at_once(name: str, seed: int) -> None:
    link = {"rate": "50Mbit", "delay": "5ms", "down": {"loss": "2%"}, "up": {"loss": "1%"}}
    network = {"kind": "star", "receivers": 6, "link": link}
    work: list[dict[str, Any]] = [{"size": 200_000}, {"size": 50_000, "at": "100ms"}]
    written = scenario(network, {"name": name, "rate": "8Mbit", "segment": 200}, work, seed=seed)
    # 1000 units for two receivers, 300 for all.
    written["faults"] = [
        {"at": "40ms", "flap": ["s1", "r2"], "for": "200ms"},
        {"at": "50ms", "flap": ["s1", "r5"], "for": "210ms"},
        {"at": "100ms", "flap": ["s1", "sender"], "for": "60ms"},
    ]
    results = [run(parse(written | way, "arq")) for way in (FAST, STRICT)]
    assert len({result.fingerprint for result in results}) == 1
    assert all(result.ok for result in results)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("keep", [1, 2])
def test_objects_that_are_repaired_no_longer_than_until_the_second_next(name: str, keep: int) -> None:
    link = {"delay": "50ms", "down": {"loss": "20%"}, "up": {"loss": "0%"}}
    network = {"kind": "star", "receivers": 8, "link": link}
    for seed in range(2):
        # The last unit says that older objects are not repaired, and END, the next message, that everything was sent.
        work: list[dict[str, Any]] = [{"size": 1401, "count": 12}]
        written = scenario(network, {"name": name, "keep": keep, "timeout": 0.25}, work, seed=seed)
        assert len(fingerprints(written, FAST, STRICT)) == 1

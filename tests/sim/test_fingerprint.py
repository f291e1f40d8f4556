"""The fingerprint: equal for equal runs whatever carries them, different for different ones."""

import json
import os
import struct
import subprocess
import sys
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from experiments.contract.content import pattern
from protocols.events import ObjectSent
from protocols.registry import file_protocols, protocol
from protocols.spec import ProtocolSpec
from protocols.traffic import Traffic
from sim.fingerprint import Fingerprint
from sim.network import Network
from tests.sim.probes import GROUP, Note, probe_on
from tests.sim.runs import Session
from tests.support.toy import TOY
from topologies.generators import AnyTopology
from topologies.spec import Topology

ANY: TypeAdapter[Any] = TypeAdapter(AnyTopology)
PROTOCOLS: dict[str, ProtocolSpec] = {"toy": TOY, **{name: protocol(name) for name in file_protocols()}}
STAR = {"kind": "star", "receivers": 6, "link": {"rate": "10Mbit", "delay": "5ms", "down": {"loss": "10%"}}}


def fingerprint(
    written: dict[str, Any],
    name: str = "toy",
    *,
    seed: int = 1,
    wire: bool = False,
    size: int = 60_000,
    engine: str = "fast",
    **parameters: Any,
) -> str:
    """Return the fingerprint of a run with default settings except for the parameters given."""
    topology: Topology = ANY.validate_python(written).build()
    session = Session(topology, PROTOCOLS[name], PROTOCOLS[name].config(**parameters), seed=seed, wire=wire, engine=engine)
    session.send(size)
    return session.run().network.fingerprint()


LOSSES = st.sampled_from(["0%", "1%", "10%", "30%"])
LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "10Mbit", "2Mbit"]),
        "delay": st.sampled_from(["0ms", "1ms", "20ms"]),
        "queue": st.sampled_from([None, 5, 50]),
        "down": st.fixed_dictionaries({"loss": LOSSES}),
        "up": st.fixed_dictionaries({"loss": LOSSES}),
    }
)
TOPOLOGIES = st.one_of(
    st.fixed_dictionaries({"kind": st.just("star"), "receivers": st.integers(1, 30), "trunk": LINKS, "link": LINKS}),
    st.fixed_dictionaries({"kind": st.just("lan"), "receivers": st.integers(1, 5), "link": LINKS}),
    st.fixed_dictionaries({"kind": st.just("chain"), "switches": st.integers(1, 3), "trunk": LINKS, "link": LINKS}),
    st.fixed_dictionaries({"kind": st.just("tree"), "depth": st.integers(1, 3), "trunk": LINKS, "link": LINKS}),
)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_bytes_and_objects_leave_the_same_fingerprint(name: str) -> None:
    @settings(deadline=None, max_examples=25, derandomize=True)
    @given(TOPOLOGIES, st.integers(0, 3), st.sampled_from([0, 1, 1400, 30_000]))
    # Receivers that miss the beginning, and so are never at the position of the sender.
    @example({"kind": "chain", "switches": 2, "link": {"down": {"loss": "30%"}}}, 151, 0)
    def check(written: dict[str, Any], seed: int, size: int) -> None:
        objects = fingerprint(written, name, seed=seed, size=size)
        assert fingerprint(written, name, seed=seed, size=size, wire=True) == objects

    check()


NORMS = st.fixed_dictionaries(
    {
        "backoff": st.sampled_from([0, 4]),
        "parity": st.sampled_from([0, 4, 16]),
        "block": st.sampled_from([4, 32]),
        "grtt": st.sampled_from([0.02, 0.3]),
        "rate": st.sampled_from([50_000.0, 1_250_000.0]),
        "auto_parity": st.sampled_from([0, 2]),
    }
).map(lambda norm: norm | {"auto_parity": min(norm["auto_parity"], norm["parity"])})


ANSWERS_AT_ONCE = ("fjm",)
"""Protocols whose machines answer a multicast without any delay: where links have none either, the answer and further copies of
the multicast are at one link at one instant, and the engines need not offer them in one order."""


def _with_delays(written: Any) -> Any:
    """Return a topology with a delay in the place of each that is 0."""
    if not isinstance(written, dict):
        return written
    return {key: "1ms" if (key, value) == ("delay", "0ms") else _with_delays(value) for key, value in written.items()}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_strict_and_the_fast_engine_leave_the_same_fingerprint(name: str) -> None:
    @settings(deadline=None, max_examples=60, derandomize=True)
    @given(TOPOLOGIES, st.integers(0, 2**32), st.sampled_from([1, 1400, 30_000, 150_000]), NORMS)
    def check(written: dict[str, Any], seed: int, size: int, norm: dict[str, Any]) -> None:
        parameters = norm if name == "norm" else {}
        written = _with_delays(written) if name in ANSWERS_AT_ONCE else written
        # It repeats everything until all have it, which takes minutes where queues are short.
        size = min(size, 30_000) if name == "toy" else size
        fast = fingerprint(written, name, seed=seed, size=size, engine="fast", **parameters)
        assert fingerprint(written, name, seed=seed, size=size, engine="strict", **parameters) == fast

    check()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_another_seed_leaves_another_fingerprint(name: str) -> None:
    assert len({fingerprint(STAR, name, seed=seed) for seed in (1, 2, 3, 1)}) == 3


def test_no_fingerprint_depends_on_the_hash_seed() -> None:
    code = (
        "import json; from tests.sim.test_fingerprint import PROTOCOLS, STAR, fingerprint; "
        "print(json.dumps({name: fingerprint(STAR, name) for name in PROTOCOLS}))"
    )
    expected = {name: fingerprint(STAR, name) for name in PROTOCOLS}
    for seed in ("1", "22"):
        found = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert json.loads(found) == expected


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_arrives_is_what_was_sent(name: str) -> None:
    topology: Topology = ANY.validate_python(STAR).build()
    session = Session(topology, PROTOCOLS[name], PROTOCOLS[name].config(), wire=True)
    session.send(40_000)
    session.run()
    assert {host: len(events) for host, events in session.received.items()} == dict.fromkeys(topology.hosts[1:], 1)
    right = pattern(40_000)
    assert all(sink.info is not None and bytes(sink.content) == right for (sink,) in session.sinks.values())


def test_records_of_one_instant_are_hashed_in_order_of_node() -> None:
    one, other, third = Fingerprint(), Fingerprint(), Fingerprint()
    for node in (1, 2):
        one.control(1.0, node, "nack", 10)
        one.notified(1.0, node, ObjectSent(node))
    for node in (2, 1):
        other.control(1.0, node, "nack", 10)
        other.notified(1.0, node, ObjectSent(node))
    for node in (2, 1):
        third.notified(1.0, node, ObjectSent(node))
        third.control(1.0, node, "nack", 10)
    hashes = [known.hexdigest(2.0, [], Traffic()) for known in (one, other, third)]
    assert hashes[0] == hashes[1] != hashes[2]


INSTANTS = st.lists(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(("ack", "nack", "")), st.integers(1, 40)), max_size=4), max_size=6
)
"""By instant, how many records follow each other: node of the first, kind of the packets (none: events), and their number."""


@given(instants=INSTANTS)
def test_the_hash_is_that_of_the_records_one_by_one(instants: list[list[tuple[int, str, int]]]) -> None:
    known, expected = Fingerprint(), blake2b(digest_size=16)
    for when, runs in enumerate(instants):
        records: list[tuple[int, bytes]] = []
        for first, kind, count in runs:
            nodes = range(first, first + count)
            if kind:
                known.controls(float(when), nodes, kind, 20)
            for node in () if kind else nodes:
                known.notified(float(when), node, ObjectSent(7))
            rest = b"C" + struct.pack("<q", 20) + kind.encode() if kind else b"E" + repr(ObjectSent(7)).encode()
            records += [(node, rest) for node in nodes]
        for node, rest in sorted(records, key=itemgetter(0)):
            expected.update(struct.pack("<dII", when, node, len(rest)) + rest)
    totals = repr([]).encode()
    expected.update(struct.pack("<dII", 9.0, 2**32 - 1, 1 + len(totals)) + b"T" + totals)
    assert known.hexdigest(9.0, [], Traffic()) == expected.hexdigest()


def test_counts_traffic_and_the_end_are_part_of_it() -> None:
    traffic = Traffic()
    traffic.count(Note(1), 10)
    known = Fingerprint()
    right = known.hexdigest(1.0, [(0, {"a": 1})], Traffic())
    assert known.hexdigest(1.0, [(0, {"a": 1})], Traffic()) == right
    assert known.hexdigest(1.5, [(0, {"a": 1})], Traffic()) != right
    assert known.hexdigest(1.0, [(0, {"a": 2})], Traffic()) != right
    assert known.hexdigest(1.0, [(1, {"a": 1})], Traffic()) != right
    assert known.hexdigest(1.0, [(0, {"a": 1})], traffic) != right


def test_the_fingerprint_of_a_fixed_run_is_what_it_always_was() -> None:
    # A change here means that every stored fingerprint changes.
    network = Network(ANY.validate_python(STAR).build(), seed=1)
    probes = {name: probe_on(network, name) for name in network.topology.hosts}
    for name, probe in probes.items():
        host = network.host(name)
        script = [(0.001 * n, n, 500 + n, GROUP, n if n % 5 else None) for n in range(200)] if name == "sender" else []
        probe.script = [*script, (0.1 + host.rng.uniform(), 0, 100, GROUP, None)]
        probe.on_receive = lambda message, now, host=host: host.notify(ObjectSent(message.number))
        host.call(probe.expect, probe.script[0][0])
    network.run(2.0)
    assert network.fingerprint() == "22f1dc1c76517b77b17d1ad7f65569cb"

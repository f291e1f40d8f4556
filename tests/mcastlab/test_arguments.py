"""What notebooks pass is taken as plain values; all else is refused in one line that names the argument."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mcastlab
from mcastlab import messaging

lab: Any = mcastlab
connect: Any = messaging.connect
"""The package and a function of it without their types, for wrong arguments."""
SMALL: dict[str, Any] = {"topology.receivers": 2, "workload.size": "5kB"}
VALUES: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "lan", "receivers": 2},
    "protocol": {"name": "norm"},
    "workload": {"size": "5kB"},
}
GROUP = "239.7.7.60:6003"
TABLE = pd.DataFrame({"a": [1, 2]})
ROWS = np.zeros((2, 2))


class Nameless:
    """A value that can't be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def host_of(scenario: mcastlab.Scenario) -> Any:
    """Return a host of a network of its own."""
    return mcastlab.Network(scenario.build_topology(), seed=1).host("r1")


def _nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.fixture(scope="module")
def small() -> mcastlab.Scenario:
    """Return a scenario whose run takes no time."""
    return mcastlab.load("lan-file", SMALL)


@pytest.fixture(scope="module")
def result(small: mcastlab.Scenario) -> mcastlab.Result:
    """Return the result of a small run."""
    return mcastlab.run(small)


# -- numbers of numpy and pandas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "given", "plain"),
    [
        ("topology.receivers", np.int64(3), 3),
        ("topology.receivers", np.float64(3.0), 3),
        ("topology.link.down.loss", np.float64(0.1), 0.1),
        ("topology.link.down.loss", np.float32(0.5), 0.5),
        ("workload.size", np.uint32(20_000), 20_000),
        ("protocol.segment", np.int64(1000), 1000),
        ("protocol.backoff", np.int16(2), 2),
        ("seed", np.uint64(2**64 - 1), 2**64 - 1),
        ("trace", np.bool_(True), True),
        ("capture", np.array(["r1", "sender"]), ["r1", "sender"]),
        ("capture", {"sender", "r1"}, ["r1", "sender"]),
        ("name", np.str_("mine"), "mine"),
    ],
)
def test_numbers_and_arrays_of_numpy_are_plain_values(key: str, given: object, plain: object) -> None:
    found, same = lab.load("lan-file", {key: given}), lab.load("lan-file", {key: plain})
    assert found == same
    assert found.digest() == same.digest()


def test_a_row_of_a_table_replaces_values() -> None:
    table = pd.DataFrame({"topology.receivers": [3, 4], "topology.link.down.loss": [0.01, 0.5]})
    found = [lab.load("lan-file", row) for _, row in table.iterrows()]
    assert [len(each.build_topology().hosts) for each in found] == [4, 5]
    assert found[1].digest() == lab.load("lan-file", {"topology.receivers": 4, "topology.link.down.loss": 0.5}).digest()


def test_values_of_a_scenario_and_a_topology_may_be_numbers_of_numpy() -> None:
    values = {**VALUES, "topology": {"kind": "lan", "receivers": np.int64(2)}}
    assert lab.Scenario(**values) == lab.Scenario(**VALUES)
    assert lab.load(values).digest() == lab.load(VALUES).digest()
    assert lab.topology("star", receivers=np.int64(2)).hosts == ("sender", "r1", "r2")


def test_counts_and_seeds_may_be_numbers_of_numpy(small: mcastlab.Scenario, result: mcastlab.Result) -> None:
    again = lab.run(small, seed=np.int64(1))
    assert (again.seed, again.fingerprint) == (1, result.fingerprint)
    assert type(again.seed) is int
    assert lab.Network(small.build_topology(), seed=np.int64(5)).seed == 5
    assert lab.NormConfig(segment=np.int64(1000), rate=np.float32(1e5)) == lab.NormConfig(segment=1000, rate=1e5)
    assert type(lab.NormConfig(segment=np.int64(1000)).segment) is int


def test_lists_of_names_may_be_any_sequence(small: mcastlab.Scenario) -> None:
    named = np.array(["norm", "a"])
    settings = {"a": {"timeout": np.float64(0.1)}}
    found = lab.compare(small, named, runs=np.int64(1), settings=settings)
    assert found.protocols == ("norm", "a")
    assert lab.compare(small, {"norm", "a"}, runs=1).protocols == ("a", "norm")
    assert lab.twin(small, 2, ["sim", "sim"]).worlds == ("sim", "sim")


# -- what is refused -------------------------------------------------------------------------------------------------

Call = Callable[[Any, Any], object]
REFUSED: dict[str, tuple[Call, str]] = {
    "a run of nothing": (lambda s, r: lab.run(None), "load: None is not allowed; a file, the name of a ready"),
    "a run of a list": (lambda s, r: lab.run([s]), "load: [Scenario("),
    "a run in a list of worlds": (lambda s, r: lab.run(s, ["sim"]), "on: value ['sim'] is not allowed; one of sim, emu"),
    "a run in no world": (lambda s, r: lab.run(s, ""), "on: value '' is not allowed; one of sim, emu"),
    "a run into a number": (lambda s, r: lab.run(s, out=3), "out: value 3 is not allowed; the path"),
    "a run into an empty path": (lambda s, r: lab.run(s, out=""), "out: value '' is not allowed; the path"),
    "a run into a NUL": (lambda s, r: lab.run(s, out="a\0b"), r"out: value 'a\x00b' is not allowed; the path"),
    "an empty name": (lambda s, r: lab.load(""), "load: value '' is not allowed; the path"),
    "text as overrides": (lambda s, r: lab.load("lan-file", "seed"), "overrides: value 'seed' is not allowed; a mapping"),
    "an empty key": (lambda s, r: lab.load("lan-file", {"topology.": 1}), "load: the path 'topology.' is not allowed; keys"),
    "an object as a value": (
        lambda s, r: lab.load("lan-file", seed=object),
        "seed: value <class 'object'> is not allowed; a number",
    ),
    "a generator as a value": (lambda s, r: lab.load("lan-file", capture=iter("s")), "capture: value <str_"),
    "a built topology": (lambda s, r: lab.load("lan-file", topology=s.build_topology()), "topology: value <topologies"),
    "an empty module": (lambda s, r: lab.load({**VALUES, "protocol": {"module": ""}}), "scenario: protocol.module: value ''"),
    "a misspelt key": (lambda s, r: lab.Scenario(topolgy=1), "topolgy: value 1 is not allowed; unknown key"),
    "no scenario": (lambda s, r: lab.Scenario(), "name: is missing; it has no default"),
    "cases of values": (lambda s, r: lab.cases(VALUES), "cases: value {'name': 'small'"),
    "cases of nothing": (lambda s, r: lab.cases(None), "cases: value None is not allowed; the path"),
    "a topology of no kind": (lambda s, r: lab.topology(None), "topology: kind: value None is not allowed"),
    "one protocol": (lambda s, r: lab.compare(s, "norm"), "protocols: value 'norm' is not allowed; at least two"),
    "settings of no protocol": (
        lambda s, r: lab.compare(s, settings={"x": {}}),
        "settings: value 'x' is not allowed; one of norm",
    ),
    "a path into text": (
        lambda s, r: lab.load("lan-file", name__x=1),
        "overrides: 'name.x=1' is not allowed; above 'x' stands",
    ),
    "a file as a folder": (lambda s, r: lab.run(s, out="/dev/null"), "out: value '/dev/null' is not allowed; a folder"),
    "protocols that are numbers": (lambda s, r: lab.compare(s, [1, 2]), "protocols: value [1, 2] is not allowed; a name"),
    "protocols that are none": (lambda s, r: lab.compare(s, 3), "protocols: value 3 is not allowed; a name or a list"),
    "settings of a number": (lambda s, r: lab.compare(s, settings={"a": 3}), "settings.a: value 3 is not allowed; a mapping"),
    "runs as text": (lambda s, r: lab.compare(s, runs="5"), "runs: value '5' is not allowed; a whole number from 1 on"),
    "pairs without end": (lambda s, r: lab.twin(s, 1001), "runs: value 1001 is not allowed; a whole number from 2 to 1000"),
    "one world": (lambda s, r: lab.twin(s, worlds=("sim",)), "worlds: value ('sim',) is not allowed; two of sim, emu"),
    "a world as text": (lambda s, r: lab.twin(s, worlds="sim"), "worlds: value 'sim' is not allowed; two of sim, emu"),
    "no worlds": (lambda s, r: lab.twin(s, worlds=None), "worlds: value None is not allowed"),
    "a second that is text": (lambda s, r: lab.twin(s, second="x"), "overrides: value 'x' is not allowed; a mapping"),
    "an unknown table": (lambda s, r: r.to_frame("loss"), "of: value 'loss' is not allowed; one of receivers,"),
    "a sweep of nothing": (lambda s, r: lab.sweep(None), "file: value None is not allowed; the path"),
    "a limit below none": (lambda s, r: lab.sweep("x", limit=-1), "limit: value -1 is not allowed; a whole number from 0 on"),
    "a master that is none": (lambda s, r: lab.sweep("x", master=None), "master: value None is not allowed; text"),
    "a retry that is text": (lambda s, r: lab.sweep("x", retry="no"), "retry: value 'no' is not allowed; True or False"),
    "a Spark that is none": (lambda s, r: lab.open_sweep("x", spark=3), "spark: value 3 is not allowed; a SparkSession"),
    "results of nothing": (lambda s, r: lab.open_sweep(None), "folder: value None is not allowed; the path"),
    "an analysis by a number": (lambda s, r: lab.analyse("x", by=3), "by: value 3 is not allowed; a name or a list of names"),
    "a margin that is no number": (lambda s, r: lab.analyse("x", margin="x"), "margin: value 'x' is not allowed; a fraction"),
    "two questions": (
        lambda s, r: lab.analyse("x", effects=True, series="all"),
        "series: is not allowed beside effects; one question at a time",
    ),
    "a comparison with a list": (lambda s, r: lab.analyse("x", compare=["n"]), "compare: value ['n'] is not allowed; text"),
    "a network of nothing": (lambda s, r: lab.Network(None, seed=1), "topology: None is not allowed; a Topology"),
    "a seed as text": (lambda s, r: lab.Network(s.build_topology(), seed="x"), "seed: 'x' is not allowed; a whole number"),
    "a seed too large": (lambda s, r: lab.Network(s.build_topology(), seed=2**64), "seed: 18446744073709551616 is not"),
    "a graph that is none": (lambda s, r: lab.Topology(3), "topology: 3 is not allowed; a directed graph of networkx"),
    "a host that is a number": (lambda s, r: s.build_topology().hosts_of(3), "3 is no host of this topology"),
    "a protocol that is a list": (lambda s, r: lab.protocol(["norm"]), "protocol: ['norm'] is unknown; allowed: a,"),
    "a setting of no unit": (
        lambda s, r: lab.setting(1, "counts"),
        "unit: 'counts' is not allowed; one of count, number, bytes",
    ),
    "a TTL as text": (lambda s, r: lab.UdpOptions(ttl="x"), "ttl: value 'x' is not allowed; a whole number from 0 to 255"),
    "a port beyond the last": (lambda s, r: lab.UdpOptions(tx_port=70_000), "tx_port: value 70000 is not allowed; a whole"),
    "a traffic class below 0": (
        lambda s, r: lab.UdpOptions(tos=-1),
        "tos: value -1 is not allowed; a whole number",
    ),
    "a flag that is text": (lambda s, r: lab.UdpOptions(reuse="no"), "reuse: value 'no' is not allowed; True or False"),
    "a source that is no list": (
        lambda s, r: lab.UdpOptions(sources="10.0.0.1"),
        "sources: value '10.0.0.1' is not",
    ),
    "a time that is none": (
        lambda s, r: host_of(s).later(float("nan"), print),
        "when: nan is not allowed; a number",
    ),
    "a group of nothing": (lambda s, r: lab.distributor(None), "group: value None is not allowed; text"),
    "an interface that is a number": (lambda s, r: lab.distributor(GROUP, 3), "iface: value 3 is not allowed; text"),
    "a scenario of several rows": (lambda s, r: lab.load(ROWS), "load: array([[0., 0.], [0., 0.]]) is not allowed; a file"),
    "a table as a value": (lambda s, r: lab.load("lan-file", seed=TABLE), "seed: value a 0 1 1 2 is not allowed; a number"),
    "a world nested 10,000 deep": (lambda s, r: lab.run(s, _nested(10_000)), "on: value <list> is not allowed; one of sim"),
    "a value that can't be shown": (lambda s, r: lab.run(s, Nameless()), "on: value <Nameless> is not allowed; one of sim"),
    "a long text as a rate": (
        lambda s, r: lab.compare(s, ["norm", "a"], settings={"a": {"rate": "x" * 1000}}),
        "lan-file under a: protocol.rate: value '" + "x" * 76 + "... is not allowed; a rate from",
    ),
    "an array as a choice": (lambda s, r: lab.NormConfig(fec=ROWS), "fec: array([[0., 0.], [0., 0.]]) is not allowed; one"),
    "a missing value as a choice": (lambda s, r: lab.SrmConfig(timers=pd.NA), "timers: <NA> is not allowed; one of"),
    "an array as a protocol": (lambda s, r: lab.protocol(ROWS), "protocol: array([[0., 0.], [0., 0.]]) is unknown; allowed"),
    "a type as a seed": (lambda s, r: lab.Network(s.build_topology(), seed=int), "seed: <class 'int'> is not allowed; a whole"),
    "an array as a TTL": (lambda s, r: lab.UdpOptions(ttl=ROWS), "ttl: value array([[0., 0.], [0., 0.]]) is not allowed"),
    "a bus that waits for a type": (lambda s, r: connect(GROUP, waiting=int), "waiting: value <class 'int'> is not allowed"),
    "a bus of a number": (lambda s, r: connect(3), "group: value 3 is not allowed; text"),
    "a bus that waits for text": (lambda s, r: connect(GROUP, waiting="x"), "waiting: value 'x' is not allowed; a whole"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_argument_is_named_in_one_line(what: str, small: mcastlab.Scenario, result: mcastlab.Result) -> None:
    call, begin = REFUSED[what]
    with pytest.raises(lab.UsageError) as caught:
        call(small, result)
    assert str(caught.value).startswith(begin)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("given", "begin"),
    [
        ({"group": None}, "group: value None is not allowed; text"),
        ({"node": "x"}, "node: value 'x' is not allowed; a whole number from 1 to 4294967294"),
        ({"folder": 3}, "folder: value 3 is not allowed; the path"),
        ({"boundary": ["line"]}, "boundary: value ['line'] is not allowed; one of line, message, byte"),
        ({"network": 3}, "network: value 3 is not allowed; UdpOptions"),
        ({"protocol": None}, "protocol: value None is not allowed; text"),
        ({"memory": "x"}, "memory: value 'x' is not allowed; a size, like 64MB"),
    ],
)
def test_a_wrong_argument_of_a_session_is_named_in_one_line(given: dict[str, Any], begin: str) -> None:
    async def take_part() -> None:
        async with lab.session(**{"group": GROUP, "iface": "lo"} | given):
            pass

    with pytest.raises(lab.UsageError) as caught:
        asyncio.run(take_part())
    assert str(caught.value).startswith(begin)


@pytest.mark.parametrize(
    ("request_", "begin"),
    [
        (lab.AckRequest("ab"), "by.nodes: value 'a' is not allowed; a whole number of at least 1"),
        (lab.AckRequest(3), "by.nodes: value 3 is not allowed; node ids"),
        (lab.AckRequest((2,), content="text"), "by.content: value 'text' is not allowed; bytes"),
        (lab.AckRequest((2,), expected=-1), "by.expected: value -1 is not allowed; a whole number of at least 0"),
        (lab.AckRequest(everybody="yes"), "by.everybody: value 'yes' is not allowed; True or False"),
        (5, "by: value 5 is not allowed; node ids, or an AckRequest"),
    ],
)
def test_a_wrong_request_for_acknowledgements_does_not_end_the_session(request_: Any, begin: str) -> None:
    async def ask() -> None:
        async with lab.session(GROUP, "lo", receive=False, grtt="1ms", robust=1) as session:
            note = await session.send_bytes(b"x")
            with pytest.raises(lab.UsageError) as caught:
                await session.sent(note, by=request_)
            assert str(caught.value).startswith(begin)
            await session.sent(note)

    asyncio.run(ask())


def test_an_answer_that_cannot_be_called_is_refused() -> None:
    async def answer() -> None:
        async with lab.session(GROUP, "lo", send=False) as session:
            session.answer_acks(5)

    with pytest.raises(lab.UsageError, match=r"^answer: value 5 is not allowed; a function of a node id and bytes$"):
        asyncio.run(answer())


def test_a_misspelt_key_has_the_nearest_one_beside_it() -> None:
    with pytest.raises(lab.ConfigError, match=r"^topolgy: .*; did you mean 'topology'\?$"):
        lab.Scenario(**{**VALUES, "topolgy": 1})


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(lab.UsageError, match="nested more than 64 deep"):
        lab.load("lan-file", capture=endless)


def test_seeds_go_on_from_the_largest_with_0(small: mcastlab.Scenario) -> None:
    assert lab.compare(lab.load(small, seed=2**64 - 1), ["norm", "a"], runs=2).seeds == (2**64 - 1, 0)


def test_a_path_may_be_any_path(tmp_path: Path, small: mcastlab.Scenario) -> None:
    class Place:
        def __fspath__(self) -> str:
            return str(tmp_path / "out")

    lab.run(small, out=Place())
    assert (tmp_path / "out" / "result.json").exists()


@pytest.mark.parametrize("choice", ["n1", None, 3, {"name": "n1"}])
def test_what_is_no_protocol_of_a_scenario_is_refused_in_one_line(small: mcastlab.Scenario, choice: Any) -> None:
    with pytest.raises(mcastlab.UsageError, match=r"^choice: value .* is not allowed; the `protocol` of a scenario") as caught:
        small.under(choice)
    assert "\n" not in str(caught.value)


def test_the_protocol_of_another_scenario_is_taken(small: mcastlab.Scenario) -> None:
    other = mcastlab.load(small, protocol={"name": "n1"})
    assert small.under(other.protocol).digest() == other.digest()

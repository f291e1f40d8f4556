"""Scenario files: validation, meaning, and one-line error messages."""

import copy
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.cli import invoke
from experiments.scenario.files import override
from experiments.scenario.scenario import Scenario, load, parse, schema
from protocols.errors import ConfigError, UsageError
from protocols.registry import names, protocol
from protocols.settings import setting_of

BASE: dict[str, Any] = {
    "name": "x",
    "topology": {"kind": "star", "receivers": 3, "link": {"rate": "10Mbit", "down": {"loss": "1%"}}},
    "protocol": {"name": "norm"},
    "workload": {"size": "4MB"},
}


def changed(*sets: str) -> Scenario:
    data = copy.deepcopy(BASE)
    override(data, sets)
    return parse(data, "FILE")


BAD = [
    ("name=5", "FILE: name: value 5 is not allowed; it should be a valid string"),
    ("seed=-1", "FILE: seed: value -1 is not allowed; it should be greater than or equal to 0"),
    ("seed=1.5", "FILE: seed: value 1.5 is not allowed; it should be a valid integer"),
    ("seed=true", "FILE: seed: value True is not allowed; it should be a valid integer"),
    ("colour=red", "FILE: colour: value 'red' is not allowed; unknown key, known here: name, seed, topology, "),
    ("topology=5", "FILE: topology: value 5 is not allowed; it should be a mapping of keys to values"),
    ("topology={receivers: 3}", "FILE: topology.kind: is missing; one of "),
    ("topology={kind: star}", "FILE: topology.receivers: is missing; it has no default"),
    ("topology={kind: tree, depth: 20}", "FILE: topology.fanout: value 2 is not allowed; 1048575 switches"),
    ("topology.kind=ring", "FILE: topology.kind: value 'ring' is not allowed; one of 'lan', 'star', 'chain', 'tree'"),
    ("topology.receivers=0", "FILE: topology.receivers: value 0 is not allowed; it should be greater than or equal to 1"),
    ("topology.reciever=8", "FILE: topology.reciever: value 8 is not allowed; unknown key, known here: nodes, multicast"),
    ("topology.link=fast", "FILE: topology.link: value 'fast' is not allowed; it should be a mapping of keys to values"),
    ("topology.link.rate=10 apples", "FILE: topology.link.rate: value '10 apples' is not allowed; it is not a rate; like"),
    ("topology.link.loss=150%", "FILE: topology.link.loss: value '150%' is not allowed; it is not a fraction; like 1%"),
    ("topology.link.loss={model: burst}", "FILE: topology.link.loss.model: value 'burst' is not allowed; one of 'perfect'"),
    ("topology.link.loss={model: bernoulli}", "FILE: topology.link.loss.p: is missing; it has no default"),
    ("topology.link.down.los=1%", "FILE: topology.link.down.los: value '1%' is not allowed; unknown key, known here: rate"),
    ("topology.link.queue=-1", "FILE: topology.link.queue: value -1 is not allowed; it should be greater than or equal to 0"),
    ("topology.link.delay=-5ms", "FILE: topology.link.delay: value '-5ms' is not allowed; it is not a duration; like 5ms"),
    (
        "protocol=norm",
        "FILE: protocol: value 'norm' is not allowed; it should be a mapping, "
        f"{{name: NAME}} with one of {', '.join(names())}; or {{module: FILE.py}}",
    ),
    (
        "faults=[{at: 1s, crash: s1, for: 1s}]",
        "FILE: faults.0.crash: value 's1' is not allowed; 's1' is no host of this topology but a switch",
    ),
    ("protocol.name=tcp", "FILE: protocol.name: value 'tcp' is not allowed; one of "),
    ("protocol.rate=10 apples", "FILE: protocol.rate: value '10 apples' is not allowed; a rate from 8bit to 8Tbit, like"),
    ("protocol.rate=0.5", "FILE: protocol.rate: value 0.5 is not allowed; a rate from 8bit to 8Tbit"),
    ("protocol.segment=4", "FILE: protocol.segment: value 4 is not allowed; a whole number from 8 to 65000"),
    ("protocol.block='64'", "FILE: protocol.block: value '64' is not allowed; a whole number from 1 to 65535"),
    ("protocol.block=250", "FILE: protocol.block: value 250 is not allowed; block + parity is at most 255"),
    ("protocol.parity=250", "FILE: protocol.parity: value 250 is not allowed; block + parity is at most 255"),
    ("protocol.fec=7", "FILE: protocol.fec: value 7 is not allowed; one of 0, 2, 5, 129"),
    ("protocol.blok=64", "FILE: protocol.blok: value 64 is not allowed; unknown key, known here: name, rate, segment, "),
    ("protocol.grtt=5000", "FILE: protocol.grtt: value 5000 is not allowed; a duration from 1ms to 1000s"),
    ("protocol.grtt=20s", "FILE: protocol.grtt: value '20s' is not allowed; at most grtt_max (10s)"),
    # The key that the user has written is named, if that is only one.
    ("protocol.grtt_max=100ms", "FILE: protocol.grtt_max: value '100ms' is not allowed; at least grtt (250ms)"),
    (
        "protocol={name: norm, rate_min: 2Mbit, rate_max: 1Mbit}",
        "FILE: protocol.rate_min: value '2Mbit' is not allowed; at most rate_max (1Mbit)",
    ),
    ("protocol={name: fjm2, grtt: 1s}", "FILE: protocol.grtt: value '1s' is not allowed; at most grtt_max (500ms)"),
    ("protocol={name: fjm, beacon: 2s}", "FILE: protocol.beacon: value '2s' is not allowed; at most silence (1s)"),
    ("protocol={name: fjm, rate: 80kbit}", "FILE: protocol.rate: value '80kbit' is not allowed; at least rate_min (100kbit)"),
    ("protocol={name: broker, retry: 10s}", "FILE: protocol.retry: value '10s' is not allowed; at most retry_max (5s)"),
    ("workload=[]", "FILE: workload: value [] is not allowed; it should have at least 1 item"),
    ("workload=5", "FILE: workload: value 5 is not allowed; it should be a mapping of keys to values"),
    ("workload.size=four", "FILE: workload.size: value 'four' is not allowed; it is not a size; like 60kB"),
    ("workload.from=nobody", "FILE: workload.from: value 'nobody' is not allowed; 'nobody' is no host of this topology"),
    ("workload.kind=stream", "FILE: workload.kind: value 'stream' is not allowed; one of 'file', 'publish', 'subscribe'"),
    ("workload.at=60s", "FILE: workload.at: value 60.0 is not allowed; before the end of the run (duration: 60.0)"),
    ("workload.color=red", "FILE: workload.color: value 'red' is not allowed; unknown key, known here: kind, from, size"),
    ("workload=[{size: 1MB}, {size: x}]", "FILE: workload.1.size: value 'x' is not allowed; it is not a size; like"),
    ("workload={size: 1, members: [r1, x]}", "FILE: workload.members: value 'x' is not allowed; 'x' is no host"),
    ("receivers=[{hosts: [sender]}]", "FILE: receivers.0.hosts: value 'sender' is not allowed; it sends, and stays"),
    ("receivers=[{hosts: [r], join: 2s, leave: 1s}]", "FILE: receivers.0.leave: value 1.0 is not allowed; later than join"),
    ("traffic=[{kind: aimd, from: r1, to: r1}]", "FILE: traffic.0.to: value 'r1' is not allowed; another host than 'from'"),
    ("traffic=[{kind: quic, from: r1, to: r2}]", "FILE: traffic.0.kind: value 'quic' is not allowed; one of 'constant'"),
    ("topology.nodes={r: {mac: single}}", "FILE: topology.nodes.r.mac: value 'single' is not allowed; only for a router"),
    ("topology.nodes={s9: {}}", "FILE: topology.nodes.s9: value 's9' is not allowed; no such node, nodes are sender, s1, r"),
    ("topology.multicast={tree: [[s1, r]]}", "FILE: topology: multicast.tree: 'sender' is not on it by one link"),
    (
        "workload=[{size: 1}, {size: 1, from: r1}, {size: 1, from: r2}, {size: 1, from: r3}]",
        "FILE: workload: value ['sender', 'r1', 'r2', 'r3'] of all 'from' is not allowed; at least one host receives",
    ),
    ("workload={size: 1, members: [sender]}", "FILE: workload.members: value ['sender'] is not allowed; a host that does not"),
    ("duration=0", "FILE: duration: value 0.0 is not allowed; it should be greater than 0"),
    ("wire=packets", "FILE: wire: value 'packets' is not allowed; it should be 'objects' or 'bytes'"),
]


def test_a_list_that_is_too_short_is_told_how_long_it_should_be() -> None:
    with pytest.raises(ConfigError) as caught:
        changed("faults=[{partition: [[r2]], at: 0}]")
    allowed = "it should have at least 2 items"
    assert str(caught.value) == f"FILE: faults.0.partition: value [['r2']] is not allowed; {allowed}"


def test_a_scope_without_receivers_is_refused_when_a_scenario_is_read() -> None:
    def scenario(ttl: int) -> Scenario:
        return changed("topology={kind: wan, sites: 1}", "protocol={name: norm}", f"workload=[{{size: 1, ttl: {ttl}}}]")

    with pytest.raises(ConfigError, match=r"workload.0.ttl: value 1 is not allowed; nobody who receives is within its reach"):
        scenario(1)
    scenario(3)


@pytest.mark.parametrize(
    ("kind", "link", "allowed"),
    [
        ("aimd", "{}", False),
        ("aimd", "{delay: 5ms}", False),
        ("aimd", "{delay: 5ms, loss: 1%}", True),
        ("aimd", "{rate: 10Mbit}", True),
        ("tcp", "{}", False),
        ("tcp", "{delay: 5ms}", True),
    ],
)
def test_a_greedy_flow_that_nothing_limits_is_refused(kind: str, link: str, allowed: bool) -> None:
    given = f"topology={{kind: star, receivers: 3, link: {link}}}", f"traffic=[{{kind: {kind}, from: r1, to: r2}}]"
    if allowed:
        changed(*given)
        return
    with pytest.raises(ConfigError, match=f"traffic.0.kind: value '{kind}' is not allowed; a rate of a link on the way"):
        changed(*given)


@pytest.mark.parametrize(("change", "line"), BAD, ids=[change for change, _ in BAD])
def test_an_error_is_one_line_with_file_key_value_and_allowed_values(change: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        changed(change)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", BASE)
def test_a_missing_key_is_named(key: str) -> None:
    data = {name: value for name, value in BASE.items() if name != key}
    with pytest.raises(ConfigError, match=f"FILE: {key}: is missing; it has no default"):
        parse(data, "FILE")


def error_of(data: dict[str, Any]) -> str:
    try:
        parse(data, "FILE").digest()
    except ConfigError as error:
        return str(error)
    return ""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "rate", "size", "p"]), inner, max_size=3)
    ),
    max_leaves=4,
)
PATHS = ["name", "seed", "topology", "topology.receivers", "topology.link", "topology.link.loss", "protocol", "protocol.rate"]
PATHS += [
    "protocol.fec",
    "protocol.grtt",
    "workload",
    "workload.size",
    "workload.count",
    "duration",
    "wire",
    "new",
    "workload.new",
]


@settings(deadline=None)
@given(st.sampled_from(PATHS), VALUES)
def test_any_value_anywhere_is_accepted_or_refused_in_one_line(path: str, value: object) -> None:
    data = copy.deepcopy(BASE)
    *parents, last = path.split(".")
    inner = data
    for key in parents:
        inner = inner[key]
    inner[last] = value
    line = error_of(data)
    assert line.startswith("FILE: ") or line == ""
    assert "\n" not in line


# -- meaning ------------------------------------------------------------------------------------------------------------


def test_units_are_converted_to_seconds_bytes_and_bytes_per_second() -> None:
    scenario = changed("protocol.rate=20Mbit", "protocol.grtt=50ms", "protocol.segment=1kB", "duration=2min")
    config = scenario.protocol.config
    assert (config.rate, config.grtt, config.segment) == (2_500_000.0, 0.05, 1000)
    assert (scenario.duration, scenario.files[0].size) == (120.0, 4_000_000)


@pytest.mark.parametrize(
    "same",
    [
        "topology.link.rate=10000kbit",
        "topology.link.down.loss={model: bernoulli, p: 0.01}",
        "topology.trunk={}",
        "protocol.rate=1Mbit",
        "protocol.block=64",
        "workload=[{size: 4000kB, from: sender, at: 0s}]",
        "duration=60",
        "wire=objects",
    ],
)
def test_scenarios_with_equal_meaning_have_equal_digests(same: str) -> None:
    assert changed(same).digest() == changed().digest()


@pytest.mark.parametrize("look", ["capture=[r1]", "trace=true", "series=1s"])
def test_recording_does_not_change_the_digest(look: str) -> None:
    assert changed(look).digest() == changed().digest()


@pytest.mark.parametrize(
    "other",
    [
        "seed=2",
        "topology.receivers=4",
        "topology.link.down.loss=2%",
        "protocol.rate=2Mbit",
        "workload.at=1s",
        "duration=61s",
        "connections.control=reno",
    ],
)
def test_different_scenarios_have_different_digests(other: str) -> None:
    assert changed(other).digest() != changed().digest()


def test_another_order_of_the_nodes_of_a_graph_is_another_scenario() -> None:
    def of(*names: str) -> Scenario:
        links = [{"ends": [name, "x"], "rate": "10Mbit"} for name in ("s", "a", "b")]
        graph = {"kind": "graph", "nodes": {name: {} for name in names}, "links": links}
        return parse({**changed().plain(), "topology": graph, "workload": {"size": "1kB", "from": "s"}}, "test")

    assert of("s", "x", "a", "b").digest() == of("s", "x", "a", "b").digest() != of("s", "x", "b", "a").digest()


def test_the_digest_is_sha256_of_canonical_json() -> None:
    from hashlib import sha256

    plain = json.loads(json.dumps(changed().plain()))
    # Engine and recording do not change the digest; nor does a list of protocol programs without any foreign one.
    for key in ("engine", "capture", "trace", "series", "statistics", "twin", "compare", "nodes"):
        del plain[key]
    # The MAC mode of a router's networks and exact rates are part of the digest only if they were set.
    del plain["emu"]["trunk"], plain["emu"]["rates"]
    # Where disks are kept is not part of it.
    del plain["emu"]["disk"]
    # Options of TCP are part of it only if they were set, too.
    del plain["connections"]
    # So is authentication.
    del plain["protocol"]["key_file"]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    assert changed().digest() == changed("engine=strict").digest() == sha256(text.encode()).hexdigest()


def test_a_scenario_is_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        changed().seed = 2


def test_the_schema_describes_every_parameter_of_the_protocol() -> None:
    choices = schema()["properties"]["protocol"]["oneOf"]
    (norm,) = [choice["properties"] for choice in choices if choice["properties"]["name"].get("const") == "norm"]
    assert norm["fec"]["enum"] == [0, 2, 5, 129]
    assert norm["block"] == {
        "description": "source symbols per FEC block (RFC 5052 9.1)",
        "default": 64,
        "type": "integer",
        "minimum": 1,
        "maximum": 65535,
    }
    json.dumps(schema())


def test_the_printed_schema_includes_topologies_named_by_their_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["schema"]) == 0
    named, kinds = json.loads(capsys.readouterr().out)["properties"]["topology"]["anyOf"]
    assert (named["required"], set(named["properties"])) == (["file"], {"file", "multicast"})
    assert "star" in kinds["discriminator"]["mapping"]


# -- files --------------------------------------------------------------------------------------------------------------


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_from_the_command_line_replace_values_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(BASE))
    scenario = load(path, ["topology.link.down.loss=5%", "workload.size=1kB"], seed=9)
    assert (scenario.seed, scenario.files[0].size) == (9, 1000)
    assert scenario.build_topology().link("s1", "r").loss.model_dump() == {"model": "bernoulli", "p": 0.05}


def test_items_of_a_list_are_replaced_by_number(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(BASE | {"workload": [{"size": 1}, {"size": 2}]}))
    assert load(path, ["workload.1.size=5"]).files[1].size == 5
    with pytest.raises(
        UsageError, match=r"--set: 'workload.2.size=5' is not allowed; '2' is not one of the list's items 0 to 1"
    ):
        load(path, ["workload.2.size=5"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: [", "line 2, column 1: did not find expected node content"),
        ("name: a\nname: b\n", "line 2, column 1: key 'name' appears twice"),
        ("- a\n", "a mapping of keys to values is expected, this is a list"),
        ("", "a mapping of keys to values is expected, this is empty"),
        ("lan-file\n", "a mapping of keys to values is expected, this is a single value"),
        ("a: !!python/object:os.system x\n", "line 1, column 4: could not determine a constructor"),
    ],
)
def test_bad_yaml_is_one_line_with_file_line_and_column(tmp_path: Path, text: str, line: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {line}")
    assert "\n" not in str(caught.value)


def test_a_missing_file_or_one_that_is_not_text_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing.yaml: can't be read"):
        load(tmp_path / "missing.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary: is not UTF-8 text \(byte 0\)"):
        load(tmp_path / "binary")


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("topology.kind", "it reads key.path=value"),
        ("=5", "it reads key.path=value"),
        ("name.x=5", "above 'x' stands the value 'x', which has no keys"),
        ("name=[", r"the value is not YAML \(line 2"),
    ],
)
def test_a_bad_replacement_is_a_one_line_error(item: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        changed(item)


READY = sorted((Path(__file__).parents[3] / "experiments" / "scenarios").glob("*.yaml"))


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_every_ready_scenario_loads_and_has_the_name_of_its_file(path: Path) -> None:
    assert load(path).name == path.stem


def test_a_parameter_bounds_another_one_of_the_same_protocol() -> None:
    for name in names():
        own = {item.name: setting_of(item) for item in fields(protocol(name).config)}
        for known in own.values():
            assert not known.at_most or own[known.at_most].unit == known.unit

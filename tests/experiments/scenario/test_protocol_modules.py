"""External protocols from files, modules and entry points."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.commands.new import TEMPLATE
from experiments.scenario import protocol_modules
from experiments.scenario.cases import load_cases
from experiments.scenario.protocol_modules import find_protocol, protocol_names, provide
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import load, parse, schema
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.spec.sweep_file import load_sweep
from protocols.errors import ConfigError

SCENARIO = """
name: own
topology: {kind: star, receivers: 3, link: {rate: 10Mbit, delay: 1ms, down: {loss: 5%}}}
protocol: {module: gossip.py, rate: 4Mbit, copies: 6}
workload: {kind: file, size: 20kB}
"""


def write_protocol(folder: Path, name: str = "gossip") -> Path:
    """Write a protocol module."""
    path = folder / f"{name}.py"
    path.write_text(TEMPLATE.read_text().replace("@name@", name))
    return path


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """Write a scenario with the protocol module beside it."""
    write_protocol(tmp_path)
    (tmp_path / "own.yaml").write_text(SCENARIO)
    return tmp_path / "own.yaml"


def test_a_file_beside_the_scenario_is_run(external: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", str(external), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["completed"]
    assert result["metrics"]["packets"]["data"] == 6 * 20


@pytest.mark.emu
def test_a_file_is_run_in_mininet(external: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", str(external), "--on", "emu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["completed"]


def test_a_file_in_the_working_directory_is_found_for_a_ready_scenario(
    external: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(external.parent)
    sets = ["--set", "protocol={module: gossip.py}", "--set", "workload.size=20kB", "--set", "topology.receivers=2"]
    assert invoke(["run", "lan-file", *sets, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["completed"]


def test_the_digest_depends_on_the_source_and_not_on_its_path(external: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_protocol(other)
    (other / "own.yaml").write_text(SCENARIO)
    first = load(external).digest()
    assert load(other / "own.yaml").digest() == first
    with (other / "gossip.py").open("a") as file:
        file.write("# changed\n")
    assert load(other / "own.yaml").digest() != first


def test_a_changed_file_is_reloaded(external: Path) -> None:
    assert load(external).protocol.config.copies == 6
    path = external.parent / "gossip.py"
    path.write_text(path.read_text().replace('"count", 1, 100', '"count", 1, 5'))
    with pytest.raises(ConfigError, match=r"protocol.copies: value 6 is not allowed; a whole number from 1 to 5"):
        load(external)


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({"module": "gossip.py", "copie": 3}, "protocol.copie: value 3 is not allowed; unknown key, known here: name, rate"),
        ({"module": "gossip.py", "rate": "fast"}, "protocol.rate: value 'fast' is not allowed; a rate from"),
        ({"module": "nothing.py"}, "protocol.module: value 'nothing.py' is not allowed; can't be read"),
        (
            {"module": "nothing.there"},
            "protocol.module: value 'nothing.there' is not allowed; a file.py or an importable module",
        ),
        ({"module": "json"}, "protocol.module: json has no PROTOCOL"),
        ({"module": 3, "name": "norm"}, "protocol.module: value 3 is not allowed"),
        ({"module": 3}, "protocol.module: value 3 is not allowed; a file.py or an importable module"),
        ({"module": ["gossip.py"]}, "protocol.module: value ['gossip.py'] is not allowed; a file.py or an importable module"),
        ({"module": ""}, "protocol.module: value '' is not allowed; a file.py or an importable module"),
        ({"module": "gossip.py", "name": "norm"}, "protocol.name: value 'norm' is not allowed; beside this module 'gossip'"),
        ({"module": "protocols.norm"}, "calls its protocol 'norm', as one of mcastlab's own is called"),
    ],
)
def test_an_invalid_protocol_module_is_a_one_line_error(
    protocol: dict[str, Any], message: str, external: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(external.parent)
    values = {"name": "x", "topology": {"kind": "lan", "receivers": 2}, "protocol": protocol, "workload": {"size": 1}}
    with pytest.raises(ConfigError) as caught:
        parse(values, "x")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (("import struct", "import strukt"), "can't be imported; ModuleNotFoundError: No module named 'strukt' (line 3)"),
        (("import struct", "raise SystemExit(0)"), "can't be imported; SystemExit: 0"),
        (("PROTOCOL =", "PROTO ="), "has no PROTOCOL = ProtocolSpec"),
        (("Codec, Sender, Receiver)", "Codec, Sender, 3)"), "make_receiver is 3; a class, or a function that makes one"),
        (("Codec, Sender, Receiver)", "None, Sender, Receiver)"), "codec is None; a class, or a function that makes one"),
        (("Codec, Sender, Receiver)", "Codec, Receiver, Sender)"), "make_sender is Receiver; a class derived from Sender"),
        (("Codec, Sender, Receiver)", "Codec, Sender)"), "has no make_receiver; beside make_sender, a class or a function"),
        (("def submit(", "def send("), "make_sender is Sender, which has no submit"),
        (("def encode(", "def code("), "codec is Codec, which has no encode"),
        (("def decode(self, data: bytes)", "def decode(self)"), "Codec.decode takes (); it is called with (data)"),
        (
            ("source: lab.Address, to: lab.Address, now: float) -> None:", "source: lab.Address) -> None:"),
            ".receive takes (message, source); it is called with (message, source, to, now)",
        ),
        (
            ("group: lab.Group, instance: int)", "group: lab.Group)"),
            "make_sender is Sender, which takes (ports, config, node, group); it is called with (ports, config, node, group, i",
        ),
        (("    def counts(", "    @property\n    def counts("), "Sender.counts is a property; a method"),
        (("    def resume(", "    async def resume("), "Sender.resume is async or a generator; a method that returns"),
        (
            ("Sender, Receiver)", "Sender, Receiver, fast='gossip_fast')"),
            "fast is 'gossip_fast'; the dotted name of an importable",
        ),
        (("Sender, Receiver)", "Sender, Receiver, fast=3)"), "fast is 3; the dotted name of an importable module"),
        (("Sender, Receiver)", "Sender, Receiver, fast='json')"), "fast is 'json', which has no make_sender"),
        (('ProtocolSpec("gossip"', "ProtocolSpec(5"), "calls its protocol 5; a text that is not empty"),
        (("segment: int = lab.setting(1000,", "segmen: int = lab.setting(1000,"), "config has no 'segment'"),
        (
            ('copies: int = lab.setting(12, "count", 1, 100, help="how often each segment is sent")', "copies: int = 12"),
            "'copies'",
        ),
    ],
)
def test_a_module_that_is_no_protocol_is_refused(replace: tuple[str, str], message: str, external: Path) -> None:
    path = external.parent / "gossip.py"
    path.write_text(path.read_text().replace(*replace))
    with pytest.raises(ConfigError, match=r"gossip\.py") as caught:
        load(external)
    assert message in str(caught.value)


def test_cases_find_their_protocols(external: Path) -> None:
    text = SCENARIO.replace("protocol: {module: gossip.py, rate: 4Mbit, copies: 6}", "protocol: {name: norm}")
    external.write_text(text + "compare: {norm: {}, mine: {protocol: {name: gossip, module: gossip.py}}}\n")
    assert [case.protocol.name for case in load_cases(external).values()] == ["norm", "gossip"]


def test_external_protocols_can_be_compared(external: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = f"norm,{external.parent / 'gossip.py'}"
    options = ["--protocols", names, "--runs", "1", "--with", "gossip.copies=8"]
    assert invoke(["compare", str(external), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["protocols"] == ["norm", "gossip"]


def test_faults_are_searched_with_an_external_protocol(external: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["search", str(external), "--runs", "3"]) == 0
    assert "nothing was broken" in capsys.readouterr().out


def test_a_sweep_includes_the_protocol_source_in_its_version(external: Path) -> None:
    path = external.parent / "sweep.yaml"
    path.write_text("name: s\nscenario: own.yaml\ncases: {six: {}, three: {protocol.copies: 3}}\n")
    plan = SweepPlan(load_sweep(path), path)
    before = plan.version
    (run, *_) = plan.runs(next(plan.points()), 0, 1)
    assert plan.modules == {str(external.parent / "gossip.py"): (external.parent / "gossip.py").read_bytes()}
    with (external.parent / "gossip.py").open("a") as file:
        file.write("# changed\n")
    assert plan.version != before
    assert plan.runs(next(plan.points()), 0, 1)[0].run_id != run.run_id


def test_a_worker_that_cannot_read_the_file_uses_the_source_in_its_job(tmp_path: Path) -> None:
    path = write_protocol(tmp_path, "shipped")
    provide({str(path): path.read_bytes()})
    path.unlink()
    assert find_protocol("", str(path)).spec.name == "shipped"


def test_installed_packages_provide_protocols_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_protocol(tmp_path, "installed_one")
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("installed_one", "installed_one:PROTOCOL", protocol_modules.GROUP)
    protocol_modules._entry_points.cache_clear()
    monkeypatch.setattr(protocol_modules, "entry_points", lambda group: [point])
    try:
        assert "installed_one" in protocol_names()
        found = find_protocol("installed_one")
        assert found.spec.name == "installed_one"
        assert found.digest
    finally:
        protocol_modules._entry_points.cache_clear()


def test_a_package_that_cannot_be_imported_spoils_only_its_own_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("broken_one", "there_is_no_such_module:PROTOCOL", protocol_modules.GROUP)
    for cached in (protocol_modules._entry_points, schema):
        cached.cache_clear()
    monkeypatch.setattr(protocol_modules, "entry_points", lambda group: [point])
    try:
        with pytest.raises(ConfigError, match=r"topology\.recievers: value 3 is not allowed; unknown key"):
            load(find_scenario("lan-file"), ["topology.recievers=3"])
        with pytest.raises(ConfigError, match="protocol 'broken_one': there_is_no_such_module:PROTOCOL can't be imported"):
            load(find_scenario("lan-file"), ["protocol={name: broken_one}"])
    finally:
        for cached in (protocol_modules._entry_points, schema):
            cached.cache_clear()

"""Without an extra, the commands and calls that need it print one line with the command that installs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import cli
from experiments.cli import invoke
from experiments.commands import doctor
from experiments.output import extras
from experiments.output.extras import EXTRAS
from tests.tidy.tree import ROOT

BLOCKED = sorted({module for extra in EXTRAS for module in extra.modules})
# Imports of these modules fail as if they were not installed.
BLOCKER = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
sys.path.insert(0, {str(ROOT)!r})
"""


def python(code: str, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run code in a process that cannot import any extra."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


NEEDS = {
    "sweep any.yaml": "mcastlab[spark]",
    "results any": "mcastlab[spark]",
    "analyse any": "mcastlab[spark]",
    "report swept": "mcastlab[spark]",
    "run lan-file --series 100ms --out any": "mcastlab[data]",
    "run lan-file --on emu": "mcastlab[emu]",
    "twin twin/lan-1": "mcastlab[emu]",
    "admin": "mcastlab[web]",
    "tunnel --group 239.7.7.7:6003 --lan lo --listen 127.0.0.1:7390 --admin http://127.0.0.1:1": "mcastlab[web]",
    "sub prices --group 239.7.7.7:6003 --iface lo --selector price>1": "mcastlab[messaging]",
    "run fjm2-wan-single": "mcastlab[messaging]",
}
MESSAGING = ("fjm2-both", "fjm2-three-sites", "fjm2-registry", "fjm", "bus-memory", "broker-fanout")
FEW = "--brief --set compare={} --set workload.0.count=5"
NEEDS_NONE = (
    *(f"run {name} {FEW}" for name in MESSAGING),
    "run lan-file",
    "topo lan-file --svg net.svg",
    "search lan-file --runs 1",
    "scenarios",
    "schema",
)
CALLS = {
    "lab.run('lan-file').to_frame()": "to_frame needs pandas; get it: pip install 'mcastlab[data]'",
    "lab.run('lan-file').plot()": "plot needs matplotlib; get it: pip install 'mcastlab[report]'",
    "lab.open_sweep('any')": "open_sweep needs pandas; get it: pip install 'mcastlab[data]'",
    "lab.sweep('any.yaml')": "a sweep needs pyspark; get it: pip install 'mcastlab[spark]'",
    "lab.analyse('any')": "analyse needs pyspark; get it: pip install 'mcastlab[spark]'",
}
ALL = (
    BLOCKER
    + """
import contextlib, io, json
from experiments.cli import invoke
outcomes = {}
for command in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = invoke(command.split())
    outcomes[command] = [code, err.getvalue()]
print(json.dumps(outcomes))
"""
)


def test_a_command_names_the_extra_it_needs(tmp_path: Path) -> None:
    # A folder of a sweep, since the report of a run needs no extra.
    (tmp_path / "swept" / "jobs").mkdir(parents=True)
    done = python(ALL, tmp_path, *NEEDS)
    for command, (code, err) in json.loads(done.stdout).items():
        assert code == 3, f"{command}: {code} {err}"
        (line,) = err.splitlines()
        assert f"pip install '{NEEDS[command]}'" in line, f"{command}: {line}"


def test_other_commands_need_no_extra(tmp_path: Path) -> None:
    done = python(ALL, tmp_path, *NEEDS_NONE)
    assert {command: code for command, (code, _) in json.loads(done.stdout).items()} == dict.fromkeys(NEEDS_NONE, 0)


def test_a_call_names_the_extra_it_needs(tmp_path: Path) -> None:
    tried = "".join(f"try:\n    {call}\nexcept lab.UnsupportedError as error:\n    print(error)\n" for call in CALLS)
    done = python(f"{BLOCKER}\nimport mcastlab as lab\n{tried}", tmp_path)
    assert done.stdout.splitlines() == list(CALLS.values()), done.stderr


def test_the_doctor_lists_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor, "list_capabilities", list)
    assert invoke(["doctor", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert {extra["name"]: extra["missing"] for extra in output["extras"]} == {
        extra.name: list(extra.modules) for extra in EXTRAS
    }
    assert invoke(["doctor"]) == 0
    assert "pip install 'mcastlab[report]'" in capsys.readouterr().out


def test_a_module_that_no_extra_brings_stays_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: object, **options: object) -> None:
        raise ModuleNotFoundError("No module named 'protocols.nothing'", name="protocols.nothing")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(ModuleNotFoundError):
        cli.invoke(["run"])

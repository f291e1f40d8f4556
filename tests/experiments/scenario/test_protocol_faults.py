"""An external protocol that raises: commands name its file, line and last calls; Python gets the exception as it is."""

import traceback
from pathlib import Path

import pytest

import mcastlab
from experiments.cli import invoke
from experiments.commands.new import TEMPLATE
from experiments.scenario.protocol_faults import fault_in

SMALL = ("--set", "workload.size=5kB", "--set", "topology.receivers=2")


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a protocol whose sender raises two calls below `submit`, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    return written(tmp_path, "raise ZeroDivisionError('two\\nlines')")


def written(folder: Path, statement: str) -> Path:
    """Write the protocol with a statement in a method that `submit` calls."""
    source = TEMPLATE.read_text().replace("@name@", "faulty")
    head = "    def submit(self, content: lab.Content, now: float) -> int:\n"
    assert source.count(head) == 1
    source = source.replace(head, f"    def _fail(self) -> None:\n        {statement}\n\n{head}        self._fail()\n")
    path = folder / "faulty.py"
    path.write_text(source)
    return path


def line_of(path: Path, text: str) -> int:
    """Return the number of the line with this text."""
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_run_names_file_line_and_exception_in_one_line(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "lan-file", *SMALL, "--set", "protocol={module: faulty.py}"]) == 2
    first, *calls = capsys.readouterr().err.splitlines()
    raised, called = line_of(faulty, "raise ZeroDivisionError"), line_of(faulty, "self._fail()")
    assert first == f"mcastlab: {faulty}: line {raised}, in _fail: ZeroDivisionError: two lines"
    assert calls == [
        f"  line {called}, in submit: self._fail()",
        f"  line {raised}, in _fail: raise ZeroDivisionError('two\\nlines')",
    ]


def test_so_does_a_comparison(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["compare", "lan-file", *SMALL, "--protocols", "faulty.py,norm", "--runs", "1"]) == 2
    assert capsys.readouterr().err.startswith(f"mcastlab: {faulty}: line ")


def changed(folder: Path, old: str, new: str) -> Path:
    """Write a protocol with one change."""
    source = TEMPLATE.read_text().replace("@name@", "faulty")
    assert source.count(old) == 1
    path = folder / "faulty.py"
    path.write_text(source.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('{"data_sent": self.sent}', "None", "Sender.counts() returns None; whole numbers by name are allowed"),
        ('{"data_sent": self.sent}', "{'a': 'b'}", "Sender.counts() returns {'a': 'b'}; whole numbers by name are allowed"),
        (
            '{"data_sent": self.sent}',
            "{'a': float('nan')}",
            "Sender.counts() returns {'a': nan}; whole numbers by name are allowed",
        ),
        (
            '{"data_sent": self.sent}',
            "{'a': float('-inf')}",
            "Sender.counts() returns {'a': -inf}; whole numbers by name are allowed",
        ),
        (
            '{"data_sent": self.sent}',
            "{}\n\n    def held(self) -> dict:\n        return {'a': 3}",
            "Sender.held() returns {'a': 3}; pairs (kept now, allowed) by name are allowed",
        ),
    ],
)
def test_a_run_names_file_class_and_method_that_returns_what_none_may(
    old: str, new: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = changed(tmp_path, old, new)
    assert invoke(["run", "lan-file", *SMALL, "--set", "protocol={module: faulty.py}"]) == 2
    assert capsys.readouterr().err == f"mcastlab: {path}: {told}\n"


def test_what_a_port_refuses_has_the_call_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = changed(tmp_path, "lab.Packet(message, size, self.group)", "lab.Packet(message, -3, self.group)")
    assert invoke(["run", "lan-file", *SMALL, "--set", "protocol={module: faulty.py}"]) == 2
    first, file, call = capsys.readouterr().err.splitlines()
    assert first == "mcastlab: sender sends 'data' with a size of -3 bytes"
    assert file == f"{path}:"
    assert call.startswith(f"  line {line_of(path, 'lab.Packet(')}, in wake: ")


def test_an_error_in_mcastlab_that_a_protocol_caused_has_its_check_beside_it(faulty: Path) -> None:
    changed(faulty.parent, "message.size, True)", "'x', True)")
    with pytest.raises(TypeError) as caught:
        invoke(["run", "lan-file", *SMALL, "--set", "protocol={module: faulty.py}"])
    advice = f"{faulty} may have returned a value that is not allowed; mcastlab contract shows which rule it breaks"
    assert advice in caught.value.__notes__


def test_a_search_names_file_and_line_of_what_it_found(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["search", "lan-file", *SMALL, "--set", "protocol={module: faulty.py}", "--runs", "1", "--json"]) == 1
    assert f"({faulty}:{line_of(faulty, 'raise ZeroDivisionError')})" in capsys.readouterr().out


@pytest.mark.parametrize("statement", ["raise SystemExit(0)", "import no_such_module", "open('no/such/file')", "raise OSError"])
def test_what_would_end_or_explain_the_program_otherwise_is_a_fault_as_well(
    statement: str, faulty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(faulty.parent, statement)
    assert invoke(["run", "lan-file", *SMALL, "--set", "protocol={module: faulty.py}"]) == 2
    assert f"{faulty}: line {line_of(faulty, statement)}, in _fail: " in capsys.readouterr().err


def test_python_gets_the_exception_with_its_traceback(faulty: Path) -> None:
    scenario = mcastlab.load("lan-file", {"workload.size": "5kB", "protocol": {"module": "faulty.py"}})
    with pytest.raises(ZeroDivisionError) as caught:
        mcastlab.run(scenario)
    assert str(faulty) in {frame.filename for frame in traceback.extract_tb(caught.tb)}
    assert caught.value.__cause__ is None


def test_an_exception_of_another_program_is_no_fault_of_a_protocol(faulty: Path) -> None:
    mcastlab.load("lan-file", {"protocol": {"module": "faulty.py"}})
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 // 0
    assert fault_in(caught.value) is None


@pytest.mark.emu
def test_no_receiver_of_a_sender_that_failed_at_its_start_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    changed(tmp_path, "def start(self, now: float) -> None: ...", "def start(self, now: float) -> None:\n        1 / 0")
    assert invoke(["run", "lan-file", *SMALL, "--set", "protocol={module: faulty.py}", "--on", "emu", "--brief"]) == 1
    assert "0 of 2 complete, failed: sender\n" in capsys.readouterr().out

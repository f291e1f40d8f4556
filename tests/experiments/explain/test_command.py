"""`mcastlab explain`: its output, capture files of other implementations, and bad input."""

import json
from pathlib import Path

import pytest

from experiments.cli import invoke
from tests.experiments.explain.planted import plant
from tests.support.captures import VECTORS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp("explain") / "run", "drop", 1).folder


def test_json_has_a_stable_shape(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", str(run), "--object", "0", "--receiver", "r1", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert list(plain) == [
        *("format", "record", "sender", "receiver", "object", "outcome", "cause", "spent", "chain", "unknown"),
    ]
    assert list(plain["outcome"]) == ["state", "time", "text"]
    assert list(plain["cause"]) == ["name", "text", "seconds"]
    assert all(list(step) == ["what", "time", "node", "text", "packet", "frames", "line"] for step in plain["chain"])


def test_people_get_80_columns(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert invoke(["explain", str(run), "--object", "0", "--receiver", "r1"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_the_ladder_of_the_chain_has_numbered_lines(run: Path, tmp_path: Path) -> None:
    drawing = tmp_path / "chain.svg"
    assert invoke(["explain", str(run), "--object", "0", "--receiver", "r1", "--svg", str(drawing)]) == 0
    assert ">1</text>" in drawing.read_text()


@pytest.mark.parametrize(
    ("name", "receiver", "cause", "words"),
    [
        ("file_loss5", "2", "drop", "missed packets of block 0.0"),
        ("nack_suppression", "5", "drop", "the last repair came"),
        ("nack_suppression", "10.77.0.3", "drop", "block 0.1"),
        ("nack_suppression", "4", "unknown", "whether it lost what 5 requested"),
        ("squelch_late_join", "3", "purge", "SQUELCH"),
        ("data_noloss", "2", "none", "nobody requested anything"),
    ],
)
def test_a_foreign_capture_tells_what_requests_and_repairs_show(
    name: str, receiver: str, cause: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = str(VECTORS / f"{name}.pcap")
    assert invoke(["explain", capture, "--object", "0", "--receiver", receiver, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["cause"]["name"], words in plain["cause"]["text"]) == (cause, True), plain["cause"]
    assert any("whether a packet reached the receiver" in text for text in plain["unknown"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--object", "7", "--receiver", "r1"], "--object: value 7 is not allowed; sender sent the objects 0, 1"),
        (["--object", "-1", "--receiver", "r1"], "--object: value -1 is not allowed"),
        (["--object", "0", "--receiver", "r99"], "--receiver: value 'r99' is not allowed"),
        (["--object", "0", "--receiver", "sender"], "it sends the object"),
        (["--object", "0", "--receiver", "r1", "--sender", "r1"], "the senders of this run are sender"),
    ],
)
def test_bad_input_is_told_in_one_line(
    run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(run), *arguments]) == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1


def test_a_run_without_a_record_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "lan-file", "--set", "workload.size=20kB", "--out", str(tmp_path), "--brief"]) == 0
    assert invoke(["explain", str(tmp_path), "--object", "0", "--receiver", "r1"]) == 2
    assert "--set trace=true" in capsys.readouterr().err

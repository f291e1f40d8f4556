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


def test_the_only_object_is_explained_at_the_receiver_that_was_complete_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    smaller = [f"--set={key}" for key in ("topology.receivers=3", "topology.link.down.loss=5%", "workload.size=200kB")]
    assert invoke(["run", "lan-file", *smaller, "--set", "trace=true", "--out", str(folder), "--brief"]) == 0
    capsys.readouterr()
    rows = json.loads((folder / "result.json").read_text())["receivers"]
    last = max(rows, key=lambda row: row["completed_at"])["name"]
    assert invoke(["explain", str(folder), "--brief"]) == 0
    assert capsys.readouterr().out.startswith(f"object 0 of sender at {last}: ")


def test_a_receiver_that_is_not_complete_is_explained_before_one_that_was_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "run")
    cut = [
        "--set",
        "topology.receivers=3",
        "--set",
        "faults=[{partition: [[sender, r1, r3], [r2]], at: 0.1s}]",
        "--set",
        "duration=8s",
    ]
    assert invoke(["run", "lan-file", *cut, "--set", "trace=true", "--out", folder, "--brief"]) == 1
    capsys.readouterr()
    assert invoke(["explain", folder, "--brief"]) == 0
    assert capsys.readouterr().out.startswith("object 0 of sender at r2: ")


def test_in_a_capture_the_only_object_and_the_only_receiver_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", str(VECTORS / "fec129_loss.pcap"), "--brief"]) == 0
    assert capsys.readouterr().out.startswith("object 0 of 1 at 2: ")
    assert invoke(["explain", str(VECTORS / "file_loss5.pcap")]) == 2
    assert "--receiver: is needed; the capture has feedback of 2, 3" in capsys.readouterr().err


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
        (["--receiver", "r1"], "--object: is needed; sender sends the objects 0 to 1"),
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


def test_a_run_with_captures_of_links_alone_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["lan-file", "--set", "workload.size=20kB", "--brief"]
    assert invoke(["run", *small, "--out", str(tmp_path), "--capture", "s1-r1"]) == 0
    assert invoke(["explain", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("a run with --capture hosts has all, this one none of a host\n")

"""Key files: their format, their errors, which show no key; and sessions with keys in the simulator."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.compare.twin.worlds import observe
from experiments.running.authentication import _warn, node_codec, read_keys, refusals_told
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, load
from protocols.errors import ConfigError
from protocols.norm import NormConfig
from protocols.norm.wire.sizes import AUTH_SIZE
from protocols.registry import protocol

KEY = "00112233445566778899aabbccddeeff"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str, mode: int = 0o600, name: str = "group.key") -> Path:
        path = tmp_path / name
        path.write_text(text)
        path.chmod(mode)
        return path

    return written


def test_a_key_file_has_a_line_for_each_key_in_the_order_of_use(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(f"# group 7\n\n12 {KEY}\n  3\t{KEY.upper() * 4}  \n")
    found = read_keys(path)
    assert list(found.items()) == [(12, bytes.fromhex(KEY)), (3, bytes.fromhex(KEY) * 4)]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no key; a line is an id from 0 to 15, a space, and 32 to 128 hexadecimal digits"),
        (f"1 {KEY}\n{KEY}\n", "line 2: is no key; an id from 0 to 15"),
        (f"16 {KEY}", "line 1: is no key"),
        (f"-1 {KEY}", "line 1: is no key"),
        (f"1 {KEY[:-2]}", "line 1: is no key"),
        (f"1 {KEY}0", "line 1: is no key"),
        (f"1 {KEY * 5}", "line 1: is no key"),
        (f"1 {KEY[:-1]}g", "line 1: is no key"),
        (f"1 {KEY} {KEY}", "line 1: is no key"),
        (f"1 {KEY}\n1 {KEY}", "line 2: key 1 is not allowed; it comes twice"),
        ("9" * 5000 + f" {KEY}", "line 1: is no key"),
        ("#" * 70_000, "has more than 65,536 bytes"),
    ],
)
def test_a_wrong_key_file_is_refused_without_showing_a_key(write: Write, text: str, reason: str) -> None:
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        read_keys(path)
    assert str(caught.value).startswith(f"key file {path}: {reason}")
    assert KEY[:8] not in str(caught.value)
    assert len(str(caught.value)) < 250 + len(str(path))


def test_what_is_no_readable_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, reason in (("none", "No such file"), ("fifo", "not a regular file"), (".", "is a folder")):
        with pytest.raises(ConfigError, match=reason):
            read_keys(tmp_path / name)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_key_file_open_to_others_is_told_once(write: Write, mode: int, capsys: pytest.CaptureFixture[str]) -> None:
    _warn.cache_clear()
    path = write(f"1 {KEY}", mode)
    read_keys(path)
    read_keys(path)
    told = capsys.readouterr().err
    assert told == f"warning: key file {path}: other users can read or change it (mode {mode:o}); chmod 600 it\n"


def test_only_a_config_with_a_key_file_gives_a_codec_that_authenticates(write: Write) -> None:
    norm, keyed = protocol("norm"), NormConfig(key_file=str(write(f"1 {KEY}")))
    assert node_codec(norm, NormConfig()) is norm.codec
    assert type(node_codec(norm, keyed)()).__name__ == "AuthenticatedCodec"


def scenario(path: Path | None, **changes: Any) -> Scenario:
    sets = [f"{key}={value}" for key, value in changes.items()]
    return load("demo", ["workload.size=300kB", *sets, *([f"protocol.key_file={path}"] if path else [])])


@pytest.mark.parametrize("engine", ["fast", "strict"])
def test_simulated_packets_are_longer_by_the_extension(write: Write, engine: str) -> None:
    # Without losses the same packets are sent, so that their bytes can be compared.
    path, lossless = write(f"1 {KEY}"), {"engine": engine, "topology.link.down.loss": "0%"}
    plain, keyed = (run(scenario(key_file, **lossless)).metrics for key_file in (None, path))
    assert keyed["packets"] == plain["packets"]
    assert keyed["bytes_sent"] == plain["bytes_sent"] + AUTH_SIZE * keyed["packets"]["total"]


def test_authenticated_runs_are_the_same_in_both_engines_and_with_bytes(write: Write) -> None:
    path = write(f"1 {KEY}")
    first, *others = (
        run(scenario(path, engine=engine, wire=wire)) for engine in ("fast", "strict") for wire in ("objects", "bytes")
    )
    assert first.completed
    assert {result.fingerprint for result in others} == {first.fingerprint}
    assert first.fingerprint != run(scenario(None)).fingerprint


def test_a_missing_key_file_is_told_in_every_mode_of_the_simulator(tmp_path: Path) -> None:
    for wire in ("objects", "bytes"):
        with pytest.raises(ConfigError, match=r"key file .*gone.* can't be read"):
            run(scenario(tmp_path / "gone", wire=wire))


def test_a_key_file_lies_beside_the_scenario_and_stays_out_of_its_digest(write: Write, tmp_path: Path) -> None:
    write(f"1 {KEY}")
    file = tmp_path / "mine.yaml"
    text = "name: mine\nseed: 1\ntopology: {kind: star, receivers: 1}\nprotocol: {name: norm, key_file: %s}\n"
    text += "workload: {size: 1MB}\nduration: 9\n"
    file.write_text(text % "group.key")
    found = load(file)
    assert found.protocol.config.key_file == str(tmp_path / "group.key")
    other = tmp_path / "other.yaml"
    other.write_text(text % "another.key")
    without = tmp_path / "without.yaml"
    without.write_text(text.replace(", key_file: %s", ""))
    assert load(other).digest() == found.digest() != load(without).digest()


def test_no_file_of_a_run_has_a_key_and_its_capture_is_verified(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = write(f"1 {KEY}"), write(f"1 {KEY[::-1]}", name="other.key")
    sets = ["--set", f"protocol.key_file={path}", "--set", "workload.size=100kB"]
    out = tmp_path / "out"
    assert invoke(["run", "demo", *sets, "--out", str(out), "--capture", "r1", "--trace", str(out / "trace.jsonl")]) == 0
    written = [file for file in out.rglob("*") if file.is_file()]
    assert len(written) >= 3
    assert not [file for file in written if KEY.encode() in file.read_bytes() or bytes.fromhex(KEY) in file.read_bytes()]
    capsys.readouterr()
    capture = str(out / "captures" / "r1.pcapng")
    assert invoke(["inspect", capture, "--key-file", str(path), "--json"]) == 0
    honest = json.loads(capsys.readouterr().out)
    assert honest["messages"] > 70
    assert invoke(["inspect", capture, "--key-file", str(other), "--json"]) == 1
    foreign = json.loads(capsys.readouterr().out)
    (violation,) = foreign["violations"]
    assert (violation["rule"], violation["count"], foreign["messages"]) == ("unauthenticated", honest["messages"], 0)


def test_two_captures_of_the_same_run_are_equal(write: Write, tmp_path: Path) -> None:
    path, found = write(f"1 {KEY}"), []
    for name in ("a", "b"):
        sets = ["--set", f"protocol.key_file={path}", "--set", "workload.size=50kB"]
        assert invoke(["run", "demo", *sets, "--out", str(tmp_path / name), "--capture", "r1"]) == 0
        found.append((tmp_path / name / "captures" / "r1.pcapng").read_bytes())
    assert found[0] == found[1]


def test_refused_packets_are_told_by_reason() -> None:
    assert refusals_told({"malformed": 3, "send_errors": 1}) == ""
    told = refusals_told({"malformed": 3, "unauthenticated": 12_000, "stale": 1})
    assert told.startswith(
        "refused: 12,000 packets without a valid MAC by a key of the key file; refused: 1 packet sent over 300"
    )


@pytest.mark.emu
def test_emulated_nodes_authenticate_and_lose_the_simulators_packets(write: Write) -> None:
    path = write(f"1 {KEY}")
    requested = scenario(path, **{"topology.link.down.loss": "5%", "topology.receivers": "2", "emu.losses": "keyed"})
    simulated, emulated = observe(requested, "sim"), observe(requested, "emu")
    assert emulated.result.completed
    assert simulated.lost is not None
    assert sum(map(len, simulated.lost.values())) > 10
    assert emulated.lost == simulated.lost
    assert not emulated.result.metrics["faults"]
    mean = [result.metrics["bytes_sent"] / result.metrics["packets"]["total"] for result in (simulated.result, emulated.result)]
    assert mean[0] == pytest.approx(mean[1], rel=0.1)

"""Mistakes in scenarios of FJM2 and tunnels, as a user types them: one line with file, key, value and what is allowed."""

import os
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.commands import pub_messages

LONG = "topic:" + "x" * 256
BAD = [
    ("workload.0.priority=10", "workload.0.priority: value 10 is not allowed", "less than or equal to 9"),
    ("workload.0.priority=-1", "workload.0.priority: value -1 is not allowed", "greater than or equal to 0"),
    ("workload.0.priority={10: 1}", "workload.0.priority.10: value 10 is not allowed", "less than or equal to 9"),
    ("workload.0.properties={a: [[1]]}", "workload.0.properties.a.0: value [1] is not allowed", "a valid boolean"),
    ("workload.0.properties={'a b': [1]}", "workload.0: property 'a b' is not allowed", "letters, digits, _ and $"),
    ("workload.0.to='topic:'", "workload.0.to: 'topic:' is not allowed", "a name of 1 to 255 bytes of UTF-8"),
    (f"workload.0.to='{LONG}'", "workload.0.to: 'topic:xxx", "a name of 1 to 255 bytes of UTF-8"),
    (f"workload.1.to='topic:{'é' * 128}'", "workload.1.to: 'topic:ééé", "a name of 1 to 255 bytes of UTF-8"),
    ("workload.0.to='queue:q'", "workload.0.to: 'queue:q' is not allowed", "there are topics only"),
    ("nodes.g1={role: tunnel}", "nodes.g1.lan: value '' is not allowed", "one of l1, w"),
    ("nodes.g1.ring=0", "nodes.g1.ring: value 0 is not allowed", "a whole number from 1 to 1000000"),
    ("nodes.g1.ring=1.5", "nodes.g1.ring: value 1.5 is not allowed", "a whole number from 1 to 1000000"),
    ("nodes.g1.peers=[g1]", "nodes.g1.peers: value ['g1'] is not allowed", "known here: role, lan, ring"),
    ("protocol.pool=0", "protocol.pool: value 0 is not allowed", "a whole number from 1"),
    ("protocol.pool=1kB", "protocol.pool: value 1000 is not allowed", "at least 4096 for a message of 4051 bytes (workload.0)"),
    ("workload.0.size={from: 1, to: 17000000}", "protocol.pool: value 16000000 is not allowed", "at least 18874368"),
    ("workload.0.size={2TB: 1}", "workload.0.size.2TB: value '2TB' is not allowed", "less than or equal to 1099511627776"),
    ("workload.0.size={1kB: 1, 3xB: 2}", "workload.0.size.3xB: value '3xB' is not allowed", "it is not a size; like 60kB"),
    ("workload.0.size={1kB: 0}", "workload.0.size.1kB: value 0 is not allowed", "greater than 0"),
    ("workload.0.size={1kB: .inf}", "workload.0.size.1kB: value inf is not allowed", "a finite number"),
    ("workload.0.size={}", "workload.0.size: value {} is not allowed", "at least 1 item"),
    ("workload.0.size={from: 3kB, to: 2kB}", "workload.0.size: value {'from': '3kB'", "'to' is at least 'from', 3000"),
    ("workload.0.properties={a: {from: 3, to: 1}}", "workload.0.properties.a: value {'from': 3", "'to' is at least 'from', 3"),
    ("protocol.queue=0", "protocol.queue: value 0 is not allowed", "a whole number from 1"),
    ("protocol.order=lifo", "protocol.order: value 'lifo' is not allowed", "one of none, fifo"),
]


BAD_SELECTORS = [
    ("price >> 1", "'>' is not allowed here; value or '(' is (column 8)", "price >> 1\n       ^"),
    ("'a' > 1", "a text can't be compared", "'a' > 1\n^"),
    ("(" * 5000, "the end is not allowed here; value or '(' or NOT is (column 5001)", "(" * 60 + "\n" + " " * 60 + "^"),
]


@pytest.mark.parametrize(("change", "problem", "allowed"), BAD)
def test_a_mistake_is_one_line_with_what_is_allowed(
    change: str, problem: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", "fjm2-wan-single", "--set", change]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("mcastlab: fjm2-wan-single: ")
    assert problem in told
    assert allowed in told


@pytest.mark.parametrize(("scenario", "work"), [("fjm2-wan-single", 2), ("broker-fanout", 1)])
@pytest.mark.parametrize(("selector", "problem", "place"), BAD_SELECTORS)
def test_a_selector_that_does_not_parse_is_shown_with_a_caret_under_the_place(
    scenario: str, work: int, selector: str, problem: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", scenario, "--set", f'workload.{work}.selector="{selector}"', "--set", "compare={}"]) == 2
    told, _, below = capsys.readouterr().err.partition("\n")
    assert told.startswith(f"mcastlab: {scenario}: workload.{work}.selector: {problem}")
    assert below == place + "\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "can't be read (No such file or directory)"),
        ("", "has no key"),
        ("0 12", "line 1: is no key; an id from 0 to 15"),
    ],
)
def test_a_key_file_that_can_not_be_used_is_told_with_its_option(
    content: str | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "site.keys"
    if content is not None:
        file.write_text(content)
        file.chmod(0o600)
    assert invoke(["pub", "t", "--group", "239.7.7.7:6003", "--tunnel-key-file", str(file)]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"mcastlab: --tunnel-key-file: key file {file}: {problem}")


def test_a_message_that_stomp_can_not_carry_is_refused_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "broker-fanout", "--set", "workload.0.properties={destination: [a]}"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("mcastlab: broker-fanout: workload.0: property 'destination' is not allowed; STOMP has a header")


def test_a_generated_message_of_a_terabyte_is_refused_before_it_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["pub", "t", "--group", "239.7.7.7:6003", "--size", "1TB", "--count", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "mcastlab: --size: value '1TB' is not allowed; at most 1,073,741,824 bytes"


@pytest.mark.parametrize("name", ["pipe", "device", "large"])
def test_a_file_to_publish_that_is_none_or_too_large_is_refused_at_once(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pub_messages, "LARGEST", 64)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "large").write_bytes(bytes(65))
    assert invoke(["pub", "t", str(tmp_path / name), "--group", "239.7.7.7:6003", "--iface", "lo"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    why = "more than 64 bytes" if name == "large" else "not a regular file"
    assert line == f"mcastlab: {tmp_path / name}: can't be read ({why})"


@pytest.mark.parametrize(("body", "content"), [("map", "5"), ("map", '{"a": {}}'), ("object", "NaN"), ("object", "{")])
def test_a_file_whose_content_a_message_can_not_have_is_named(
    body: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text(content)
    assert invoke(["pub", "t", str(tmp_path / "file"), "--type", body, "--group", "239.7.7.7:6003", "--iface", "lo"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mcastlab: {tmp_path / 'file'}: the content")
    assert f"{body}: " in line

"""`mcastlab pub` and `mcastlab sub` with FJM2, as programs over the loopback device."""

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from experiments.cli import invoke
from experiments.commands.messaging_options import bus
from experiments.session.node_file import node_schema, read_node
from tests.experiments.running.test_pub_sub import ENVIRONMENT, command, publisher, subscriber
from tests.tidy.tree import ROOT

FJM2 = ("--protocol", "fjm2")


def _rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_lines_reach_who_selects_them() -> None:
    waiting = subscriber(6241, "prices", "news", *FJM2, "--selector", "price > 10", "--count", "2", "--json")
    sent = publisher(6241, "prices", *FJM2, "--property", "price=12.5", "--priority", "7", "--json", lines="one\ntwo")
    out, told = waiting.communicate(timeout=40)
    assert (sent.returncode, waiting.returncode) == (0, 0), (sent.stderr, told)
    first, second, summary = _rows(out)
    assert (first["content"], second["content"], first["body"]) == ("one", "two", "text")
    assert (first["topic"], first["priority"], first["properties"]) == ("prices", 7, {"price": 12.5})
    ours = json.loads(sent.stdout)
    keys = {"event", "ok", "messages", "bytes", "seconds", "messages_per_s", "goodput_mbit_s", "expired", "refused"}
    keys |= {"nacks_sent", "nacks_received", "repairs", "pool", "cpu_s"}
    for row in (summary, ours):
        assert keys <= row.keys()
        assert (row["ok"], row["messages"], row["bytes"]) == (True, 2, 6)
    assert ours["pool"]["taken"] == 2


def test_files_and_generated_messages_with_a_node_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}')
    node = tmp_path / "node.yaml"
    node.write_text("group: 239.7.7.43:6242\niface: lo\nprotocol: {name: fjm2, rate: 50Mbit, queue: 20, order: fifo}\n")
    waiting = subscriber(6242, "t", *FJM2, "--config", str(node), "--count", "501", "--format", "raw")
    sent = publisher(6242, "t", str(tmp_path / "a.json"), *FJM2, "--config", str(node), "--type", "map")
    more = publisher(6242, "t", *FJM2, "--config", str(node), "--size", "100", "--count", "500", "--rate", "5000/s")
    out, told = waiting.communicate(timeout=60)
    assert (sent.returncode, more.returncode, waiting.returncode) == (0, 0, 0), (sent.stderr, more.stderr, told)
    assert len(out) >= 500 * 100
    assert "received: 501 messages in" in told
    assert "sent, reception not confirmed: 500 messages in" in more.stderr


def test_what_was_published_before_a_line_that_is_refused_is_sent() -> None:
    waiting = subscriber(6244, "t", *FJM2, "--count", "2", "--json")
    sent = publisher(6244, "t", *FJM2, "--type", "map", lines='{"a": 1}\n{"a": 2}\n{"a"\n')
    out, told = waiting.communicate(timeout=40)
    assert (sent.returncode, waiting.returncode) == (2, 0), (sent.stderr, told)
    assert [row["content"] for row in _rows(out)[:-1]] == [{"a": 1}, {"a": 2}]
    assert "standard input: line 3 is no map: " in sent.stderr


HERE = ("--group", "239.7.7.43:6243", "--iface", "lo")
BAD = [
    (["pub", *HERE], "TOPIC: is missing"),
    (["pub", "", *HERE], "topic:NAME with a name of 1 to 255 bytes"),
    (["pub", "t", "--iface", "lo"], "--group: is missing"),
    (["pub", "t", "--group", "10.0.0.1"], "--group"),
    (["pub", "t", *HERE, "--priority", "10"], "--priority: 10 is not allowed; a whole number from 0 to 9"),
    (["pub", "t", *HERE, "--ttl", "soon"], "--ttl"),
    (["pub", "t", *HERE, "--ttl", "0s"], "--ttl: value '0s' is not allowed; a time above 0"),
    (["pub", "t", *HERE, "--property", "a=1", "--property", "a=2"], "--property: 'a' is not allowed twice"),
    (["pub", "t", *HERE, "--property", "a"], "--property: 'a' is not allowed; name=value or name:type=value"),
    (["pub", "t", *HERE, "--property", "a:decimal=1"], "type one of boolean, byte, short"),
    (
        ["pub", "t", *HERE, "--property", "a:byte=300"],
        "--property: 'a:byte=300' is not allowed; '300' is no byte, a whole number from -128",
    ),
    (["pub", "t", *HERE, "--rate", "fast"], "--rate: value 'fast' is not allowed; messages per second"),
    (["pub", "t", *HERE, "--rate", "5/s", "--gap", "1s"], "--gap: is not allowed beside --rate"),
    (["pub", "t", "there-is-none", *HERE], "there-is-none: can't be read"),
    (["pub", "t", *HERE, "--subject", "/a"], "--subject: is not an option of protocol fjm2"),
    (
        ["pub", "t", *HERE, "--protocol", "distributor", "--priority", "3"],
        "--priority: is not an option of protocol distributor",
    ),
    (["pub", "t", *HERE, "--bandwidth", "fast"], "--bandwidth"),
    (["sub", "t", *HERE, "--selector", "price >> 1"], "       ^"),
    (["sub", "t", *HERE, "--selector", "'a' > 1"], "selector: a text can't be compared"),
    (["sub", "t", *HERE, "--format", "raw", "--json"], "--format: value 'raw' is not allowed with --json; json"),
    (["sub", "t", *HERE, "--order", "lifo"], "--order: value 'lifo' is not allowed; it is not one of 'none', 'fifo'"),
    (["sub", "x" * 256, *HERE], "with a name of 1 to 255 bytes"),
    (["sub", "t", *HERE, "--config", "there-is-none.yaml"], "there-is-none.yaml: can't be read"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_told_and_ends_with_two(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err


NODES = [
    ("", "node.yaml: a mapping of keys to values is expected, this is empty"),
    ("grup: 239.7.7.7:1", "grup: value '239.7.7.7:1' is not allowed; unknown key"),
    ("protocol: {name: fjm2, pool: 0}", "protocol.pool: value 0 is not allowed"),
    ("protocol: {name: fjm2, scheduling: fair}", "one of strict, weighted"),
    ("hops: 300", "hops: value 300 is not allowed"),
    ("protocol: {name: fjm3}", "protocol.name: value 'fjm3' is not allowed"),
]


@pytest.mark.parametrize(("text", "words"), NODES)
def test_a_node_file_with_a_mistake_is_refused_in_one_line(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(text)
    assert invoke(["sub", "t", *HERE, "--config", str(path)]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert str(path) in "".join(told.split("\n"))


def test_an_option_overrides_a_node_file_and_a_wrong_group_is_told_with_its_origin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "node.yaml"
    path.write_text("group: nowhere\niface: nothing\nhops: 4\n")
    assert invoke(["sub", "t", "--config", str(path)]) == 2
    assert f"{path}: group: 'nowhere' is not an address" in capsys.readouterr().err
    assert invoke(["sub", "t", "--config", str(path), "--group", "here"]) == 2
    assert "--group: 'here' is not an address" in capsys.readouterr().err
    assert invoke(["sub", "t", "--config", str(path), "--group", "239.7.7.43:6243"]) == 2
    assert f"{path}: iface: 'nothing' is no device" in capsys.readouterr().err
    for given, hops in ((None, 4), (1, 1)):
        assert bus("fjm2", "publisher", path, "239.7.7.43:6243", "lo", given)._place.network.ttl == hops


@pytest.mark.parametrize(("pool", "size", "needed"), [("1kB", "4kB", 4096), (None, "17MB", 18_874_368)])
def test_a_pool_that_is_too_small_for_a_message_is_told_with_the_file_that_says_so(
    pool: str | None, size: str, needed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(f"protocol: {{name: fjm2, pool: {pool}}}")
    origin, there = (["--config", str(path)], 1000) if pool else ([], 16_000_000)
    assert invoke(["pub", "t", *HERE, *origin, "--size", size, "--count", "1"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert f"{path if pool else '--config'}: protocol.pool: value {there} is not allowed; at least {needed}" in told


def test_messages_that_are_larger_than_the_pool_of_a_subscriber_are_told(tmp_path: Path) -> None:
    node = tmp_path / "node.yaml"
    node.write_text("protocol: {name: fjm2, pool: 1kB}")
    waiting = subscriber(6246, "t", *FJM2, "--config", str(node), "--count", "1")
    assert publisher(6246, "t", *FJM2, "--size", "4kB", "--count", "2").returncode == 0
    assert publisher(6246, "t", *FJM2, "--size", "10", "--count", "1").returncode == 0
    out, told = waiting.communicate(timeout=40)
    assert (waiting.returncode, out) == (1, "t 0.........\n")
    assert "1 message in" in told
    assert "2 refused, which are larger than the pool" in told


def test_a_publisher_ends_with_the_last_message_that_is_wanted_and_reads_no_more() -> None:
    arguments = command("pub", 6245, "t", *FJM2, "--count", "2")
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT, text=True
    ) as sent:
        assert sent.stdin is not None
        assert sent.stderr is not None
        sent.stdin.write("one\ntwo\n")
        sent.stdin.flush()
        assert sent.wait(40) == 0
        assert "2 messages in" in sent.stderr.read()


def test_the_schema_of_node_files_is_that_of_what_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["schema", "--node"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == json.loads(json.dumps(node_schema()))
    jsonschema.validate({"group": "239.7.7.7:1", "protocol": {"name": "fjm2", "rate": "5Mbit", "pool": "1MB"}}, schema)
    path = tmp_path / "node.yaml"
    path.write_text("protocol: {name: fjm2, rate: 8Mbit}")
    assert read_node(path).protocol.config.rate == 1e6

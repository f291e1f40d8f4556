"""Bad files, options and names: one line that says what is wrong, exit code 2, and little time and memory."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.analysis.analysis_request import write_csv
from experiments.cli import invoke
from experiments.output.safe_text import csv_cell, printable
from protocols.registry import names
from topologies.strict_yaml import VALUE_LIMIT

SCENARIO = """name: x
topology: {kind: lan, receivers: 2}
protocol: {name: norm, rate: 10Mbit}
workload: {kind: file, size: 10kB}
"""
PUBLISHED = """name: x
topology: {kind: lan, receivers: 2}
protocol: {name: norm}
workload:
  - {kind: publish, hosts: [sender], to: /t, size: 1, rate: 10, count: 1}
  - {kind: subscribe, hosts: [r1], to: /t}
"""
SWEEP = "name: s\nscenario: ok.yaml\naxes: {seed: [1, 2]}\n"
DIGITS = "9" * 6000
LONGEST_LINE = 700
MOST_LOOPS, MOST_MEGABYTES = 30.0, 200
"""Processor time in units of a loop over five million numbers, which takes 0.1 to 0.3 s."""


def bomb(levels: int, *, merged: bool = False) -> str:
    """A scenario of a few lines whose aliases stand for ten times as many values on each level."""
    lines = ["compare:", "  a0: &a0 {x: 1}"]
    for level in range(1, levels):
        below = [f"*a{level - 1}"] * 10
        entries = f"<<: [{', '.join(below)}]" if merged else ", ".join(f"k{n}: {alias}" for n, alias in enumerate(below))
        lines.append(f"  a{level}: &a{level} {{{entries}}}")
    return SCENARIO + "\n".join(lines)


HOSTILE_FILES = {
    "aliases": (bomb(9), f"more than {VALUE_LIMIT:,} values, aliases included"),
    "merge keys": (bomb(9, merged=True), f"more than {VALUE_LIMIT:,} values, aliases included"),
    "an alias in itself": (SCENARIO + "faults: &a [*a]\n", "alias 'a' stands for a value it is part of"),
    "many values": (SCENARIO + "faults: [" + "1," * VALUE_LIMIT + "]\n", f"more than {VALUE_LIMIT:,} values"),
    "many faults": (
        SCENARIO + "faults: [" + "1," * 190_000 + "]\n",
        "faults.0: value 1 is not allowed; it should be a map",
    ),
    "a thousand million receivers": (
        SCENARIO.replace("receivers: 2", "receivers: 1000000000"),
        "topology.receivers: value 1000000000 is not allowed; it should be less than or equal to 2000000",
    ),
    "receivers as text": (SCENARIO.replace("receivers: 2", "receivers: 1e9"), "topology.receivers: value '1e9' is not allowed"),
    "receivers on many switches": (
        SCENARIO.replace("kind: lan, receivers: 2", "kind: chain, switches: 1000, receivers: 1000000"),
        "1000000001 hosts, and 2000000 is the limit",
    ),
    "a key that is a list": (SCENARIO + "? [a, b]\n: 1\n", "line 5, column 3: a key is a list or a mapping"),
    "a key that is a mapping": (SCENARIO + "faults: {{a: 1}: 2}\n", "line 5, column 10: a key is a list or a mapping"),
    "a key that is a number": (SCENARIO + "compare: {1: {seed: 2}}\n", "compare.1: value 1 is not allowed"),
    "lists in lists": (SCENARIO + "faults: " + "[" * 2000 + "]" * 2000, "nested more than 64 deep"),
    "mappings in mappings": ("".join(" " * n + "a:\n" for n in range(2000)), "nested more than 64 deep"),
    "an impossible date": (SCENARIO + "duration: 2020-13-45\n", "duration: value '2020-13-45' is not allowed"),
    "a date": (SCENARIO + "duration: 2020-10-10\n", "duration: value '2020-10-10' is not allowed"),
    "digits": (SCENARIO + f"seed: {DIGITS}\n", "line 5, column 7: 9999"),
    "digits after 0x": (SCENARIO + f"seed: 0x{DIGITS}\n", "has 6002 digits, at most 100 are allowed"),
    "digits in a duration": (SCENARIO + f"duration: '{DIGITS}'\n", "it is not a duration"),
    "no digits": (SCENARIO + "seed: 0b_\n", "line 5, column 7: 0b_ is not allowed; it is no int"),
    "a tag": (SCENARIO + "seed: !!int x\n", "line 5, column 7: x is not allowed; it is no int"),
    "not a number": (SCENARIO + "duration: .nan\n", "duration: value nan is not allowed"),
    "infinity": (SCENARIO + "duration: .inf\n", "duration: value inf is not allowed"),
    "control characters": (SCENARIO + '"a\\e[31m": 1\n', "a\\x1b[31m: value 1 is not allowed"),
    "a long key": (SCENARIO + "a" * 900 + ": 1\n", "aaa... value 1 is not allowed; unknown key"),
    "an unknown key": (SCENARIO + "durration: 5\n", "unknown key, known here: name, seed"),
    "a key with a typo": (SCENARIO + "durration: 5\n", "; did you mean 'duration'?"),
    "a deep key with a typo": (SCENARIO.replace("receivers: 2", "recievers: 2"), "; did you mean 'receivers'?"),
    "a setting with a typo": (
        SCENARIO.replace("rate:", "ratte:"),
        "; did you mean 'rate'?",
    ),
    "a protocol with a typo": (
        SCENARIO.replace("norm", "nrom"),
        f"one of {', '.join(names())}; did you mean 'norm'?",
    ),
    "a topology with a typo": (SCENARIO.replace("lan", "lann"), "; did you mean 'lan'?"),
    "a delay without a model": (
        SCENARIO.replace("receivers: 2", "receivers: 2, link: {delay: {mean: 1ms}}"),
        "topology.link.delay.model: is missing; one of normal, pareto, trace, uniform",
    ),
    "a loss without a model": (
        SCENARIO.replace("receivers: 2", "receivers: 2, link: {loss: {p: 1%}}"),
        "topology.link.loss.model: is missing; one of perfect, bernoulli, content",
    ),
    "an unknown key of a loss": (
        SCENARIO.replace("receivers: 2", "receivers: 2, link: {loss: {model: bernoulli, q: 1%}}"),
        "topology.link.loss.q: value '1%' is not allowed; unknown key, known here: model, p",
    ),
    "an unknown key of a delay": (
        SCENARIO.replace("receivers: 2", "receivers: 2, link: {delay: {model: pareto, least: 1ms, mean: 2ms, q: 1%}}"),
        "topology.link.delay.q: value '1%' is not allowed; unknown key, known here: order, model, ",
    ),
    "an unknown key of a node": (
        SCENARIO.replace("kind: lan, receivers: 2", "kind: graph, nodes: {a: {foo: 1}}, links: []"),
        "topology.nodes.a.foo: value 1 is not allowed; unknown key, known here: mac, duplex, ",
    ),
    "nodes that are none": (
        SCENARIO.replace("kind: lan, receivers: 2", "kind: graph, nodes: , links: []"),
        "topology.nodes: value None is not allowed; it should be a mapping",
    ),
    "a message of no size that numbers have": (
        PUBLISHED.replace("size: 1", "size: 1e30"),
        "workload.0.size: value '1e30' is not allowed; it should be less than or equal to 1099511627776",
    ),
    "an unknown key of a queue": (
        SCENARIO.replace("receivers: 2", "receivers: 2, link: {queue: {model: red, q: 1%}}"),
        "topology.link.queue.q: value '1%' is not allowed; unknown key, known here: model, ",
    ),
    "a weight of no size": (
        PUBLISHED.replace("size: 1", "size: {large: 1}"),
        "workload.0.size.large: value 'large' is not allowed; it is not a size; like 60kB or 1MiB",
    ),
    "a text for a list": (SCENARIO + "traffic: x\n", "traffic: value 'x' is not allowed; it should be a list"),
    "an empty list": (
        PUBLISHED.replace("[sender]", "[]"),
        "workload.0.hosts: value [] is not allowed; it should have at least 1 item",
    ),
    "a file that the wire format can't number": (
        SCENARIO.replace("norm", "n1").replace("10kB", "1000TB"),
        "bad.yaml: workload.size: value 1000000000000000 is not allowed; at most 23488101000 with segment 1400",
    ),
    "a file that NORM can't number": (
        SCENARIO.replace("10kB", "1000TB"),
        "bad.yaml: workload.size: value 1000000000000000 is not allowed; at most ",
    ),
    "a file whose name is longer than a segment": (
        SCENARIO.replace("10Mbit", "10Mbit, segment: 8"),
        "bad.yaml: protocol.segment: value 8 is not allowed; at least 10 for a name of 10 bytes (workload)",
    ),
    "more files than there are object ids": (
        SCENARIO.replace("{kind: file, size: 10kB}", f"[{', '.join(['{size: 1, count: 30000}'] * 3)}]"),
        "bad.yaml: workload.2.count: value 30000 is not allowed; at most 65536 files of one host in all, and with this sender "
        "sends 90000",
    ),
    "a message that no object holds": (
        PUBLISHED.replace("size: 1", "size: 5GB"),
        "bad.yaml: workload.0.size: value 5000000000 is not allowed; at most 4294967295",
    ),
    "a message that no datagram holds": (
        PUBLISHED.replace("norm", "datagram").replace("size: 1", "size: 5GB"),
        "bad.yaml: workload.0.size: value 5000000000 is not allowed; at most 4294967295",
    ),
    "an update that is too long": (
        PUBLISHED.replace("norm", "distributor").replace("size: 1", "size: 17MB"),
        "bad.yaml: workload.0.size: value 17000035 with properties is not allowed; an update has at most 16777216 bytes",
    ),
    "a subject with a wildcard": (
        PUBLISHED.replace("norm", "distributor").replace("/t", "/*"),
        "bad.yaml: workload.0.to: subject '/*' has '*'; only subscriptions have wildcards",
    ),
    "a property that no update holds": (
        PUBLISHED.replace("norm", "distributor").replace("size: 1", "size: 1, properties: {price: 99999999999999999999}"),
        "bad.yaml: workload.0.properties: 'price' with value 99999999999999999999 is not allowed; a name of 1 to 255 ",
    ),
    "a destination that is too long": (
        PUBLISHED.replace("/t", "/" + "t" * 300),
        f"bad.yaml: workload.0.to: value '/{'t' * 75}... is not allowed; at most 255 bytes of UTF-8",
    ),
    "a publisher that ends before it begins": (
        PUBLISHED.replace("size: 1", "size: 1, at: 2s, until: 1s"),
        "bad.yaml: workload.0.until: value 1.0 is not allowed; later than at, 2.0",
    ),
    "a fault after the end of the run": (
        SCENARIO + "duration: 2s\nfaults: [{at: 1s, crash: r1}, {at: 2s, crash: r1}]\n",
        "bad.yaml: faults.1.at: value 2.0 is not allowed; before the end of the run (duration: 2.0)",
    ),
    "a receiver that joins after the end of the run": (
        SCENARIO + "duration: 2s\nreceivers: [{hosts: [r1], join: 3s}]\n",
        "bad.yaml: receivers.0.join: value 3.0 is not allowed; before the end of the run (duration: 2.0)",
    ),
    "a pattern that nothing matches": (
        PUBLISHED.replace("norm", "distributor").replace("to: /t}", "to: t}"),
        "bad.yaml: workload.1.to: subscription 't' has no '/'",
    ),
    "a tab": ("topology:\n\tkind: lan\n", "bad.yaml: line 2, column 1: a tab; YAML is indented by spaces"),
    "a tab below a value": (SCENARIO + "\tseed: 1\n", "bad.yaml: line 5, column 1: a tab; YAML is indented by spaces"),
    "a text that needs quotes": ("name: @x\n", "bad.yaml: line 1, column 7: a value can't begin with '@'; in quotes it can"),
    "two keys in a line": ("name: x: y\n", "bad.yaml: line 1, column 8: a key can't stand here: the line is indented too far"),
    "two documents": (
        SCENARIO + "---\na: 1\n",
        "bad.yaml: line 5, column 1: expected a single document in the stream but found another document",
    ),
    "a sweep": (SWEEP, "bad.yaml: is a sweep and no scenario; run it with: mcastlab sweep bad.yaml"),
}
GROUP = "239.1.1.1:6003"
BAD_OPTIONS = {
    "a deep path": (["run", "ok.yaml", "--set", ".".join(["a"] * 3000) + "=1"], "a path has at most 64 keys"),
    "digits": (["run", "ok.yaml", "--set", f"seed={DIGITS}"], "has 6000 digits"),
    "an index of digits": (
        ["run", "ok.yaml", "--set", "capture=[a]", "--set", f"capture.{DIGITS}=1"],
        "is not one of the list's items 0 to 0",
    ),
    "a topology of too many hosts": (
        ["run", "tree-1000", "--set", "topology.receivers=200000"],
        "mcastlab: tree-1000: topology: 5000001 hosts, and 2000000 is the limit",
    ),
    "nesting": (["run", "ok.yaml", "--set", "faults=" + "[" * 2000], "nested more than 64 deep"),
    "a complex key": (["run", "ok.yaml", "--set", "protocol={[a]: 1}"], "a key is a list or a mapping"),
    "a device as scenario": (["run", "/dev/zero"], "/dev/zero: can't be read (not a regular file)"),
    "a pipe as scenario": (["run", "pipe"], "pipe: can't be read (not a regular file)"),
    "a pipe with a suffix": (["run", "pipe.yaml"], "pipe.yaml: can't be read (not a regular file)"),
    "a folder as scenario": (["run", "."], "can't be read (is a folder)"),
    "a long name": (["run", "a" * 5000], "File name too long"),
    "bytes that are no text": (
        ["run", "ok.yaml", "--set", "name=\udcff"],
        "the value is not YAML (a text that UTF-8 can't hold)",
    ),
    "bytes that are no channel": (["channel", "show", "\udcff"], "is neither a file nor a channel"),
    "an address of another machine": (
        ["send", "ok.yaml", "--group", GROUP, "--iface", "192.0.2.1"],
        "--iface: value '192.0.2.1' is not allowed; a device or an address of this machine",
    ),
    "a group as device": (
        ["recv", "--group", GROUP, "--dir", ".", "--iface", "239.1.1.1"],
        "--iface: value '239.1.1.1' is not",
    ),
    "every address as device": (["stream", "send", "--group", GROUP, "--iface", "0.0.0.0"], "--iface: value '0.0.0.0' is not"),
    "a broadcast as device": (["pub", "t", "--group", GROUP, "--iface", "127.255.255.255"], "--iface: value '127.255.255.255'"),
    "no device for the Distributor": (
        ["sub", "/a", "--protocol", "distributor", "--group", GROUP, "--iface", "nosuch0"],
        "mcastlab: --iface: 'nosuch0' is no device with an IPv4 address",
    ),
    "bytes that are no device": (["recv", "--group", GROUP, "--dir", ".", "--iface", "\udcff"], "is no device with an IPv4"),
    "a pattern that nothing matches": (
        ["sub", "t", "--protocol", "distributor", "--group", GROUP, "--iface", "lo"],
        "TOPIC: subscription 't' has no '/'",
    ),
    "a subject without a slash": (
        ["pub", "t", "--protocol", "distributor", "--group", GROUP, "--iface", "lo"],
        "--subject: subject 't' does not begin with '/'",
    ),
    "no topic": (["sub", "", "--group", GROUP, "--iface", "lo"], "TOPIC: 'topic:' is not allowed; topic:NAME with a name of 1"),
    "a word of Python as a protocol": (
        ["new", "protocol", "class"],
        "NAME: value 'class' is not allowed; it is a word of Python",
    ),
    "a scenario with a typo": (["run", "lan-fil"], "near: lan-file"),
    "a device as capture": (["inspect", "/dev/zero"], "/dev/zero: can't be read (not a regular file)"),
    "a pipe as capture": (["inspect", "pipe"], "pipe: can't be read (not a regular file)"),
    "a device as trace": (["ladder", "/dev/zero", "--svg", "x.svg"], "/dev/zero: can't be read (not a regular file)"),
    "a pipe as trace": (["ladder", "pipe", "--svg", "x.svg"], "pipe: can't be read (not a regular file)"),
    "a device as record": (["channel", "fit", "/dev/zero"], "/dev/zero: can't be read (not a regular file)"),
    "a device as network": (["run", "ok.yaml", "--set", "topology={file: /dev/zero}"], "/dev/zero"),
    "a long name to send": (["send", "a" * 5000, "--group", GROUP], "File name too long"),
    "a long name of a capture": (["inspect", "a" * 5000], "can't be read (File name too long)"),
    "a channel file that is not there": (["channel", "show", "wlan.yaml"], "'wlan.yaml' is neither a file nor a channel"),
    "a channel that loses too much": (["channel", "show", "150%"], "'150%' is not allowed; it is not a fraction"),
    "a long channel": (["channel", "show", "[" * 5000], "is neither a file nor a channel"),
    "a protocol with a typo": (["compare", "ok.yaml", "--protocols", "norm,n22"], "; did you mean 'n2'?"),
    "a pipe to send": (["send", "pipe", "--group", GROUP], "pipe: is not a file"),
    "a file to send whose name is longer than a segment": (
        ["send", "ok.yaml", "long-name.yaml", "--group", GROUP, "--segment", "8"],
        "long-name.yaml: --segment: value 8 is not allowed; at least 14 for a name of 14 bytes",
    ),
    "nan seconds to send": (
        ["send", "ok.yaml", "--group", GROUP, "--timeout", "nan"],
        "--timeout: 'nan' is not a duration; like 5ms or 1s",
    ),
    "negative seconds to send": (["send", "ok.yaml", "--group", GROUP, "--timeout", "-1"], "--timeout: '-1' is not a duration"),
    "endless seconds to send": (
        ["send", "ok.yaml", "--group", GROUP, "--timeout", "inf"],
        "--timeout: 'inf' is not a duration",
    ),
    "nan seconds to receive": (
        ["recv", "--dir", "in", "--group", GROUP, "--timeout", "nan"],
        "--timeout: 'nan' is not a duration; like 5ms or 1s",
    ),
    "negative seconds to receive": (["recv", "--dir", "in", "--group", GROUP, "--timeout", "-1"], "--timeout"),
    "a protocol of messages to the contract of files": (
        ["contract", "relay"],
        "PROTOCOL: value 'relay' is not allowed; one that carries files",
    ),
    "two schemas": (["schema", "--sweep", "--node"], "--sweep, --node: only one of them is allowed"),
    "nan effort": (["validate", "--effort", "nan"], "--effort: value nan is not allowed; more than 0"),
    "negative effort": (["validate", "--effort", "-1"], "--effort: value -1.0 is not allowed; more than 0"),
    "much effort": (["validate", "--effort", "1001"], "--effort: value 1001.0 is not allowed; more than 0, at most 100\n"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with two scenarios and two pipes that nobody writes to."""
    monkeypatch.chdir(tmp_path)
    Path("ok.yaml").write_text(SCENARIO, encoding="utf-8")
    Path("long-name.yaml").write_text(SCENARIO, encoding="utf-8")
    for name in ("pipe", "pipe.yaml"):
        os.mkfifo(name)
    return tmp_path


def refused(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command that exits with 2 and one short line on stderr."""
    assert invoke(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert len(err) <= LONGEST_LINE


@pytest.mark.parametrize(("text", "expected"), HOSTILE_FILES.values(), ids=HOSTILE_FILES)
def test_a_hostile_scenario_is_refused_in_one_line(text: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.yaml").write_text(text, encoding="utf-8")
    refused(["run", "bad.yaml"], expected, capsys)


@pytest.mark.parametrize(("arguments", "expected"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_a_bad_option_is_refused_in_one_line(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(arguments, expected, capsys)


def test_a_scenario_given_to_sweep_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    refused(["sweep", "ok.yaml"], "ok.yaml: is a scenario and no sweep; run it with: mcastlab run ok.yaml", capsys)


@pytest.mark.parametrize("given", ["/dev/zero", "pipe"])
def test_a_device_or_pipe_given_to_sweep_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(["sweep", given], f"{given}: can't be read (not a regular file)", capsys)


def test_a_metric_with_a_typo_gets_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sweep.yaml").write_text(SWEEP + "until: {metric: completion_tme, width: 0.1}\n", encoding="utf-8")
    assert invoke(["sweep", "sweep.yaml"]) == 2
    assert "; did you mean 'completion_time'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["aliases", "merge keys", "many values", "many faults", "a thousand million receivers"])
def test_a_hostile_file_costs_little_time_and_memory(name: str) -> None:
    Path("bad.yaml").write_text(HOSTILE_FILES[name][0], encoding="utf-8")
    loops, megabytes = cost(["run", "bad.yaml"])
    assert loops < MOST_LOOPS
    assert megabytes < MOST_MEGABYTES


MEASURED = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
def loop():
    begin, total = time.process_time(), 0
    for number in range(5_000_000):
        total += number
    return time.process_time() - begin
before, begin = loop(), time.process_time()
from experiments.cli import invoke
invoke(sys.argv[1:])
spent = time.process_time() - begin
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(2 * spent / (before + loop()), int(peak.split()[1]) / 1000)
"""


def cost(arguments: list[str]) -> tuple[float, float]:
    """Run a command in a process of its own; returns its processor time in loops and its peak memory in MB."""
    done = subprocess.run([sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True, check=True, timeout=60)
    loops, megabytes = done.stdout.split()[-2:]
    return float(loops), float(megabytes)


# -- traces ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[" * 5000, "line 2 is not JSON"),
        ("x" * 1_000_001, "line 2 has more than 1,000,000 characters"),
        ('{"time": "soon", "node": "r1", "name": "end", "data": {}}', "is no whole trace"),
        ('{"time": NaN, "node": "r1", "name": "end", "data": {}}', "is no whole trace"),
        ("[1]", "is no whole trace"),
        ('{"time": 1, "node": "r1", "name": "packet_sent", "data": {"packet": []}}', "is no whole trace"),
    ],
)
def test_a_hostile_trace_is_refused(line: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    from sim.tracer import FORMAT

    head = json.dumps({"format": FORMAT, "hosts": ["sender"]})
    Path("trace.jsonl").write_text(f"{head}\n{line}\n", encoding="utf-8")
    refused(["ladder", "trace.jsonl", "--svg", "x.svg"], expected, capsys)


# -- outputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["twin", "ok.yaml", "--out", "."],
        ["search", "ok.yaml", "--out", "."],
        ["validate", "--out", "none/page.md"],
        ["report", ".", "--out", "."],
        ["run", "ok.yaml", "--trace", "."],
        ["run", "lan-file", "--out", "ok.yaml"],
        ["sweep", "sweep.yaml", "--out", "ok.yaml"],
    ],
    ids=lambda command: command[0],
)
def test_an_output_that_can_not_be_written_is_refused_before_the_work(
    command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("typer.core.TyperCommand.invoke", lambda *arguments: pytest.fail("began"))
    assert invoke(command) == 2
    assert "is not allowed; it can't be written (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["run", "ok.yaml", "--out"], "--out"),
        (["run", ""], "SCENARIO"),
        (["man", ""], "DIR"),
        (["topo", "ok.yaml", "--kathara"], "--kathara"),
        (["recv", "--group", GROUP, "--dir"], "--dir"),
        (["send", "ok.yaml", "", "--group", GROUP], "FILE"),
        (["pub", "t", ""], "FILE"),
        (["sweep", "sweep.yaml", "--out"], "--out"),
    ],
)
def test_an_empty_name_of_a_file_is_not_the_working_folder(
    command: list[str], name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    given = command if "" in command else [*command, ""]
    refused(given, f"{name}: value '' is not allowed; the name of a file", capsys)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--svg", "a.svg", "--core", "ok.yaml/x.xml"], "--core: value 'ok.yaml/x.xml' is not allowed"),
        (["--svg", "a.svg", "--mininet", "."], "--mininet: value '.' is not allowed; it can't be written (is a folder)"),
        (
            ["--svg", "a.svg", "--kathara", "pipe"],
            "--kathara: value 'pipe' is not allowed; it can't be written (not a folder)",
        ),
        (["--mininet", "a.py", "--svg", "none/a.svg"], "--svg: value 'none/a.svg' is not allowed; it can't be written (there"),
        (["--svg", "a.svg", "--core", "a.svg"], "--core: value 'a.svg' is not allowed; --svg writes there"),
        (["--run", "run", "--svg", "run/result.json"], "--svg: value 'run/result.json' is not allowed; it is a recording"),
        (["--svg", "a.svg", "--core", "/proc/x.xml"], "--core: value '/proc/x.xml' is not allowed; it can't be written ("),
    ],
)
def test_topo_writes_nothing_if_one_output_cannot_be_written(
    options: list[str], expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "result.json").touch()
    before = sorted(folder.iterdir())
    refused(["topo", "ok.yaml", *options], expected, capsys)
    assert sorted(folder.iterdir()) == before


def test_a_file_name_that_is_not_utf_8_is_no_error_of_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["topo", "ok.yaml", "--mininet", "\udc80.py", "--json"]) == 0
    compile((folder / "\udc80.py").read_text(encoding="utf-8"), "script", "exec")
    capsys.readouterr()
    refused(["channel", "show", "\udc80.py"], "channel: value '\\udc80.py' is not allowed; a name that UTF-8 can hold", capsys)


def test_formulas_in_csv_are_text_and_can_be_restored() -> None:
    texts = ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "\tx", "'quoted", "plain", "2=3", ""]
    write_csv([{"name": text, "count": -1} for text in texts], Path("out.csv"))
    with Path("out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["count"] for row in rows] == ["-1"] * len(texts)
    assert not any(row["name"].startswith(("=", "+", "-", "@", "\t")) for row in rows)
    assert [row["name"].removeprefix("'") for row in rows] == texts
    assert [csv_cell(value) for value in (-1.5, None, True)] == [-1.5, None, True]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("photo 1.jpg", "photo 1.jpg"),
        ("Grüße.txt", "Grüße.txt"),
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\udcff", "\\udcff"),
    ],
)
def test_characters_that_a_terminal_obeys_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown

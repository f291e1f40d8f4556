"""Channel models from captures and traces: estimation, files, and the syntax of tc."""

import json
import shlex
from collections.abc import Sequence
from math import exp
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from pydantic import TypeAdapter

from experiments.captures.datagrams import read_capture
from experiments.channel.channel_fit import chi2_survival, fit_channels, wilson
from experiments.channel.hidden_markov import log_likelihood
from experiments.channel.loss_record import read_record
from experiments.cli import invoke
from experiments.scenario.scenario import load
from protocols.errors import ConfigError
from tests.support.captures import CAPTURES, VECTORS, udp_payloads
from topologies.channels import Channel, Loss, Recorded

LOSS: TypeAdapter[Channel] = TypeAdapter(Loss)


def fates(written: Any, count: int) -> list[bool]:
    """Draw the fates of `count` first transmissions on a channel."""
    link = LOSS.validate_python(written).link(5)
    assert link is not None
    return [link.lost(identity) for identity in range(count)]


def pcap(path: Path, payloads: Sequence[bytes], *, ng: bool = False, cooked: bool = False) -> Path:
    """Write a capture of UDP datagrams."""
    frames = []
    for payload in payloads:
        ip = pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0, 1, 17, 0, b"\x0a\0\0\1", b"\xef\0\0\1")
        link = pack(">HHHQH", 0, 1, 6, 0, 0x0800) if cooked else bytes(12) + b"\x81\x00\x00\x05\x08\x00"
        frames.append(link + ip + pack(">HHHH", 6003, 6003, 8 + len(payload), 0) + payload)
    kind = 113 if cooked else 1
    if ng:
        data = pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28) + pack("<IIHHII", 1, 20, kind, 0, 0, 20)
        for frame in frames:
            length = 32 + (len(frame) + 3) // 4 * 4
            body = pack("<IIIIIII", 6, length, 0, 0, 0, len(frame), len(frame)) + frame
            data += body + bytes(length - 4 - len(body)) + pack("<I", length)
    else:
        data = pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, kind)
        data += b"".join(pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames)
    path.write_bytes(data)
    return path


def norm(sequence: int, source: int = 1, kind: int = 2) -> bytes:
    """Encode as much of a NORM message as the sequence number of a sender needs."""
    return pack(">BBHIHBB", 0x10 | kind, 4, sequence & 0xFFFF, source, 7, 0, 0) + bytes(8)


@pytest.mark.parametrize("form", [{}, {"ng": True}, {"cooked": True}])
def test_gaps_in_the_sequence_numbers_of_a_capture_are_losses(tmp_path: Path, form: dict[str, bool]) -> None:
    # Across the 16-bit wrap, one late, one duplicate, two missing; feedback and another sender do not count.
    came = [65_533, 65_534, 0, 65_535, 0, 3, 4]
    packets = [norm(sequence) for sequence in came] + [norm(9, kind=4), norm(1, source=2), norm(900, source=2)[:9]]
    path = pcap(tmp_path / "a.pcap", packets, **form)
    record = read_record(path)
    assert record.fates == [False, False, False, False, True, True, False, False]
    assert "sender 1 at 10.0.0.1, instance 7" in record.origin
    with pytest.raises(ConfigError, match="senders: 1, 2"):
        read_record(path, 3)


@pytest.mark.parametrize("capture", ["file_loss5", "cc_two_receivers", "nack_suppression"])
def test_recorded_captures_agree_with_an_independent_reader(capture: str) -> None:
    assert capture in CAPTURES
    assert [item.payload for item in read_capture(VECTORS / f"{capture}.pcap")] == list(udp_payloads(capture))


@pytest.mark.parametrize("broken", [b"\xa1\xb2\xc3\xd4", b"\x0a\x0d\x0d\x0a" + bytes(20), b"\xd4\xc3\xb2\xa1" + bytes(40)])
def test_a_broken_capture_is_a_one_line_error(tmp_path: Path, broken: bytes) -> None:
    (tmp_path / "bad.pcap").write_bytes(broken)
    with pytest.raises(ConfigError, match=r"bad\.pcap: "):
        read_record(tmp_path / "bad.pcap")


def test_a_trace_is_zeros_and_ones(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("# what came\n0010 011\n1\n")
    assert [int(lost) for lost in read_record(trace).fates] == [0, 0, 1, 0, 0, 1, 1, 1]
    trace.write_text("001\n0x1\n")
    with pytest.raises(ConfigError, match="line 2: 'x' is not allowed"):
        read_record(trace)


def test_wilson_and_chi_squared_agree_with_tables() -> None:
    found = wilson(10, 100)
    assert (found.low, found.high) == pytest.approx((0.05523, 0.17437), abs=1e-5)
    assert [chi2_survival(value, k) for value, k in ((3.841459, 1), (18.307038, 10), (124.342113, 100))] == pytest.approx(
        [0.05] * 3
    )
    assert chi2_survival(7.0, 2) == pytest.approx(exp(-3.5))


def test_the_interval_of_none_begins_at_0_and_that_of_all_ends_at_1() -> None:
    for trials in range(1, 200):
        assert wilson(0, trials).low == 0.0
        assert wilson(trials, trials).high == 1.0


def test_the_likelihood_of_a_short_record_is_the_sum_over_all_state_paths() -> None:
    p, r, bad, good = 0.3, 0.4, 0.8, 0.1
    record, total = [False, True, True, False, True], 0.0
    for path in range(32):
        states = [path >> n & 1 for n in range(5)]
        chance = (p if states[0] else r) / (p + r)
        for n, state in enumerate(states):
            e = bad if state else good
            chance *= e if record[n] else 1 - e
            if n < 4:
                leave = r if state else p
                chance *= leave if states[n + 1] != state else 1 - leave
        total += chance
    assert exp(log_likelihood([1, 2, 1, 1], (p, r, bad, good))) == pytest.approx(total)


@pytest.mark.parametrize(
    ("model", "written", "count"),
    [
        ("bernoulli", {"model": "bernoulli", "p": 0.03}, 20_000),
        ("gilbert", {"model": "gilbert-elliott", "p": 0.01, "r": 0.25}, 40_000),
        ("gilbert-elliott", {"model": "gilbert-elliott", "p": 0.01, "r": 0.1, "loss_bad": 0.4, "loss_good": 0.002}, 60_000),
    ],
)
def test_a_fit_recovers_the_model_and_its_parameters(model: str, written: dict[str, Any], count: int) -> None:
    fitted = fit_channels(fates(written, count))
    best = fitted.best
    assert best.model == model
    for name, estimate in best.parameters.items():
        assert estimate.low is not None
        assert estimate.high is not None
        # Eight estimates with 95 % intervals: intervals widened by half should all cover.
        slack = 0.5 * (estimate.high - estimate.low) / 2
        assert estimate.low - slack <= written[name] <= estimate.high + slack
    for p in (best.burst_p, best.gap_p):
        assert p is None or p > 0.001
    if model != "bernoulli":
        assert fitted.fits[0].gap_p is not None
        assert fitted.fits[0].gap_p < 1e-6


@pytest.mark.parametrize("record", [[False] * 5, [True] * 5, [False, True], [True, False, True], [False] * 9 + [True]])
def test_short_and_degenerate_records_are_fitted(record: list[bool]) -> None:
    fitted = fit_channels(record)
    assert fitted.recorded.pattern == record
    assert fitted.best.channel.rate == pytest.approx(sum(record) / len(record), abs=0.4)
    assert json.dumps(fitted.plain())


def test_a_fitted_channel_replays_the_record_in_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = fates({"model": "gilbert-elliott", "burst": 3, "gap": 30}, 3000)
    trace, out = tmp_path / "a.trace", tmp_path / "wlan.yaml"
    trace.write_text("".join(str(int(lost)) for lost in record))
    assert invoke(["channel", "fit", str(trace), "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["packets"], found["lost"], found["best"]) == (3000, sum(record), "gilbert")
    scenario = tmp_path / "a.yaml"
    scenario.write_text(
        f"name: a\ntopology: {{kind: star, receivers: 2, link: {{down: {{loss: {{file: '{out}'}}}}}}}}\n"
        "protocol: {name: norm}\nworkload: {size: 50kB}\n"
    )
    channel = load(scenario).build_topology().link("s1", "r").loss
    assert isinstance(channel, Recorded)
    assert channel.pattern == record
    link = channel.link(1)
    assert link is not None
    assert [link.lost(identity) for identity in range(3000)] == record
    assert invoke(["run", str(scenario)]) == 0
    assert "as recorded over 3000 packets" in capsys.readouterr().out
    assert invoke(["channel", "fit", str(trace), "--out", str(out), "--as", "best"]) == 0
    assert LOSS.validate_python({"file": str(out)}).rate == pytest.approx(sum(record) / 3000, rel=0.1)


@pytest.mark.parametrize(
    ("channel", "code", "words"),
    [
        ("1%", 0, "netem loss random 1%"),
        ("{model: gilbert-elliott, p: 1%, r: 25%, loss_bad: 90%, loss_good: 0.1%}", 0, "netem loss gemodel 1% 25% 90% 0.1%"),
        ("{model: recorded, runs: [6, 2]}", 0, "netem loss gemodel 16.6667% 50% 100% 0%\n# netem can't replay a recording"),
        ("{model: periodic, every: 9}", 1, "# loss periodic: netem doesn't support this loss"),
    ],
)
def test_a_channel_is_printed_in_the_syntax_of_tc(
    channel: str, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["channel", "show", channel, "--dev", "eth0"]) == code
    out = capsys.readouterr().out
    assert "tc qdisc add dev eth0 root handle 1: " in out
    assert words in out


def test_every_link_of_a_scenario_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.yaml"
    link = "{rate: 8Mbit, queue: {model: codel}, delay: {model: normal, mean: 20ms, sd: 2ms}, duplicate: 1%, mtu: 1400}"
    path.write_text(
        f"name: a\ntopology: {{kind: lan, receivers: 2, link: {link}}}\nprotocol: {{name: norm}}\nworkload: {{size: 1}}\n"
    )
    assert invoke(["channel", "show", str(path), "--json"]) == 0
    rows = {row["link"]: row["commands"] for row in json.loads(capsys.readouterr().out)}
    assert rows["s1-r"] == [
        "ip link set dev DEV mtu 1400",
        "tc qdisc add dev DEV root handle 1: netem delay 20ms 2ms distribution normal duplicate 1% rate 8000000bit",
        "tc qdisc add dev DEV parent 1: handle 10: codel limit 1000 target 5ms interval 100ms",
    ]


def test_a_queue_of_priorities_is_printed_with_a_band_for_each_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.yaml"
    link = "{rate: 8Mbit, queue: {model: priority, packets: 50}}"
    path.write_text(
        f"name: a\ntopology: {{kind: lan, receivers: 2, link: {link}}}\nprotocol: {{name: norm}}\nworkload: {{size: 1}}\n"
    )
    assert invoke(["channel", "show", str(path), "--json"]) == 0
    commands = next(row["commands"] for row in json.loads(capsys.readouterr().out) if row["link"] == "s1-r")
    assert f"parent 1: handle 10: prio bands 10 priomap {' '.join('8' * 16)}" in commands[1]
    assert sum("pfifo limit 50" in command for command in commands) == 10
    filters = [command.partition("u32 match ip dsfield ")[2] for command in commands if "tc filter" in command]
    # EF and VOICE-ADMIT before CS5, LE and CS1 behind the default; all others by their first three bits.
    assert [each for each in filters if "0xfc" in each] == [
        "0x04 0xfc flowid 10:a",
        "0x20 0xfc flowid 10:a",
        "0xb0 0xfc flowid 10:3",
        "0xb8 0xfc flowid 10:3",
    ]
    assert "0xa0 0xe0 flowid 10:4" in filters
    assert len(filters) == 11


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "{model: burst}"], "model: value 'burst' is not allowed; one of 'perfect'"),
        (["show", "no-such-file"], "channel: 'no-such-file' is neither a file nor a channel"),
        (["fit", "no-such-file"], "no-such-file: can't be read"),
        (["fit", __file__], "is not allowed; a trace is 0 (received) and 1 (lost), or a capture"),
        (["fit", "x", "--as", "best guess"], "--as: value 'best guess' is not allowed"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["channel", *arguments]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("text", [".5%", "0.5%", "0.005"])
def test_a_fraction_is_written_as_in_scenarios(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["channel", "show", text]) == 0
    assert "0.5% loss" in capsys.readouterr().out


def test_commands_for_a_device_of_any_name_can_be_run_by_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["channel", "show", "1%", "--dev", "wlan 0"]) == 0
    command = next(line for line in capsys.readouterr().out.splitlines() if not line.startswith("#"))
    assert shlex.split(command)[:5] == ["tc", "qdisc", "add", "dev", "wlan 0"]

"""Statistics of `mcastlab send`, `recv` and `stream` while they run, over the loopback device."""

import asyncio
import json
import os
import socket
from pathlib import Path
from subprocess import run
from threading import Thread
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from experiments.cli import invoke
from experiments.contract.worlds import free_port, new_group
from experiments.running.live import live as open_live
from experiments.running.live_statistics import WantedStatistics
from experiments.session.membership import Membership
from experiments.session.session import Session
from protocols.registry import protocol
from tests.support.transfers import COMMAND, QUICK, Processes, events, until

pytestmark = pytest.mark.emu


def session_of(told: dict[str, Any]) -> dict[str, Any]:
    """Return the session in a statistics event."""
    assert told["statistics"]["part"] == "host"
    session: dict[str, Any] = told["statistics"]["parts"][0]
    return session


def test_both_ends_tell_the_same_transfer_and_prometheus_reads_it(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "file").write_bytes(os.urandom(1_000_000))
    port = free_port()
    receiver = live.receiver("--dir", tmp_path / "got", "--count", "1", "--timeout", "30", "--json", "--stats", "100ms")
    sender = live.start(
        "send",
        tmp_path / "file",
        "--rate",
        "16Mbit",
        "--grtt",
        "10ms",
        "--robust",
        "5",
        "--json",
        "--stats",
        "100ms",
        "--metrics",
        str(port),
    )
    scraped = ""

    def is_served() -> bool:
        nonlocal scraped
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                scraped = answer.read().decode()
        except URLError:
            return False
        return "mcastlab_session_data_sent_total" in scraped

    until(is_served, sender)
    assert f'session="{live.group}"' in scraped
    sent, got = ([each for each in events(process) if each["event"] == "statistics"] for process in (sender, receiver))
    assert len(sent) > 3
    first, last = session_of(sent[0]), session_of(sent[-1])
    assert first["states"] == {"role": "sender", "activity": "sending"}
    assert (last["states"]["activity"], last["values"]["bytes_sent"], last["values"]["objects_sent"]) == ("idle", 1_000_000, 1)
    rates = [told["rates"]["parts"][0].get("values", {}).get("bytes_sent", 0) for told in sent]
    assert max(rates) == pytest.approx(2_000_000, rel=0.3)
    final = session_of(got[-1])["values"]
    assert (final["bytes_received"], final["objects_received"], final["data_lost"]) == (1_000_000, 1, 0)
    assert [told["time"] for told in got] == sorted(told["time"] for told in got)


def test_without_a_terminal_there_are_lines_on_standard_error(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5000)
    sender = live.start("send", tmp_path / "file", *QUICK, "--stats", "50ms")
    out, err = sender.communicate(timeout=60)
    assert sender.returncode == 0
    assert "statistics" not in out
    assert "idle, bytes sent 5 kB" in err.splitlines()[-1]


def test_a_stream_keeps_its_output_for_itself() -> None:
    arguments = ["stream", "send", "--group", new_group(), "--iface", "127.0.0.1", "--grtt", "10ms"]
    ended = run(
        [*COMMAND, *arguments, "--stats", "100ms", "--json"],
        input=b"one\ntwo\n",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == b""
    *told, summary = map(json.loads, ended.stderr.splitlines())
    assert summary["event"] == "summary"
    session = session_of(told[-1])
    assert session["values"]["bytes_sent"] == 8
    assert [part["states"]["kind"] for part in session["parts"] if part["part"] == "object"] == ["stream"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--stats", "soon"], "--stats: "),
        (["--stats", "1ms"], "--stats: value '1ms' is not allowed; from 10ms"),
        (["--metrics", "nowhere"], "--metrics: value 'nowhere' is not allowed; ADDR:PORT"),
        (["--metrics", "192.0.2.1:1"], "--metrics: 192.0.2.1:1 can't be used (Cannot assign requested address)"),
    ],
)
def test_other_options_are_one_line_and_exit_code_2(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    code = invoke(["send", str(tmp_path / "file"), "--group", new_group(), "--iface", "127.0.0.1", *options])
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert words in line


def test_a_port_in_use_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        code = invoke(["send", str(tmp_path / "file"), "--group", new_group(), "--iface", "127.0.0.1", "--metrics", address])
    assert code == 2
    assert capsys.readouterr().err == f"mcastlab: --metrics: {address} can't be used (Address already in use)\n"


def test_a_request_while_the_loop_does_not_run_gets_an_empty_answer() -> None:
    port, norm = free_port(), protocol("norm")
    session = Session(Membership(norm, norm.config(), new_group(), "127.0.0.1"), sends=False)
    answers: list[bytes] = []

    def ask() -> None:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            answers.append(answer.read())

    async def main() -> None:
        async with session:
            with WantedStatistics.of(None, str(port)).told(runner, session.host, norm.measures):
                thread = Thread(target=ask)
                thread.start()
                thread.join()
                await asyncio.to_thread(ask)

    with open_live() as runner:
        runner.play(main())
    assert answers[0] == b""
    assert b"mcastlab_session_data_received_total" in answers[1]

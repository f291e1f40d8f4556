"""The command `mcastlab broker serve`: what it refuses, and what it says; tests/protocols/broker/test_interop.py uses it."""

import json
import socket

import pytest

from experiments.cli import invoke
from experiments.contract.worlds import free_port
from tests.protocols.broker.served import ADDRESS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "nowhere"], "--listen: 'nowhere' is not an address and a port"),
        (["--listen", f"{ADDRESS}:0"], "--listen: "),
        (["--queue", "0"], "--queue: value 0 is not allowed"),
        (["--window", "-1"], "--window: "),
        (["--timeout", "-1"], "--timeout: "),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["broker", "serve", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_port_in_use_is_what_this_machine_can_t_do(kind: int, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind((ADDRESS, 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        assert invoke(["broker", "serve", "--listen", f"{ADDRESS}:{taken.getsockname()[1]}", "--timeout", "1"]) == 3
    assert "--listen: " in capsys.readouterr().err


def test_an_end_by_time_is_a_success_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["broker", "serve", "--listen", f"{ADDRESS}:{free_port()}", "--timeout", "0.1", "--json"]) == 0
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["event"] == "listening"
    assert last["event"] == "summary"
    assert last["messages_relayed"] == 0

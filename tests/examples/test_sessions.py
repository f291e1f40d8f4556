"""The examples of sessions: a chat on lossy links, a feed of prices, and pictures with deadlines."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

import mcastlab
from emu.namespaces import run_isolated
from examples.chat import chat
from examples.live_video import play
from examples.market_data import SYMBOLS, feed
from experiments.contract.worlds import new_group
from tests.emu.lab import Lab
from tests.support.sessions import run
from tests.tidy.tree import ROOT
from topologies.generators import Star


def test_what_one_types_all_others_read() -> None:
    async def main() -> dict[str, list[str]]:
        group, everyone = new_group(), ("Ada", "Bob", "Cyd")
        shown: dict[str, list[str]] = {name: [] for name in everyone}
        done = asyncio.Event()

        async def lines(name: str) -> AsyncIterator[str]:
            for number in range(3):
                yield f"line {number} of {name}\n"
            # All stay until they have read the others.
            if all(len(other) >= 8 for other in shown.values()):
                done.set()
            await done.wait()

        def show(name: str, line: str) -> None:
            shown[name].append(line)
            if all(len(other) >= 8 for other in shown.values()):
                done.set()

        async def node(name: str) -> None:
            options: dict[str, Any] = {"boundary": "line", "rate": "20Mbit", "grtt": "5ms", "robust": 4}
            async with mcastlab.session(group, "127.0.0.1", **options) as session:
                await chat(session, name, lines(name), lambda line: show(name, line))

        async with asyncio.TaskGroup() as tasks:
            for name in everyone:
                tasks.create_task(node(name))
        return shown

    for name, shown in run(main()).items():
        for other in {"Ada", "Bob", "Cyd"} - {name}:
            said = [line for line in shown if other in line and "left" not in line]
            assert said == [f"* {other} is here", *(f"{other}: line {number} of {other}" for number in range(3))]


def chat_on_lossy_links() -> list[str]:
    """Chat from one host of a lossy star to another; return what the other shows."""
    link = {"rate": "10Mbit", "delay": "5ms", "down": {"loss": "20%"}}
    lab = Lab(Star.model_validate({"kind": "star", "receivers": 1, "link": link}).build())

    def start(host: str, name: str, typing: str) -> "subprocess.Popen[str]":
        program = [sys.executable, "-m", "examples.chat", "--iface", lab.device(host), "--name", name]
        return lab.start(host, ["sh", "-c", f"cd {ROOT}; {typing} | {' '.join(program)}"])

    reader = start("r1", "Bob", "sleep 100")
    lab.await_join("r1", "239.7.7.11")
    start("sender", "Ada", "seq 1 500")
    assert reader.stdout is not None
    shown = [""]
    while shown[-1] != "* Ada has left":
        shown.append(reader.stdout.readline().rstrip())
        assert reader.poll() is None
    return shown


@pytest.mark.emu
def test_a_chat_loses_no_line_on_lossy_links() -> None:
    shown = run_isolated(chat_on_lossy_links)
    assert [line for line in shown if line.startswith("Ada: ")] == [f"Ada: {number}" for number in range(1, 501)]


def test_all_subscribers_have_the_last_prices() -> None:
    found = run(feed(new_group(), "127.0.0.1", 3, 500, 5_000))
    assert [(len(subscriber.ages), subscriber.gaps) for subscriber in found] == [(500, 0)] * 3
    assert found[0].last == found[1].last == found[2].last
    assert set(found[0].last) == set(SYMBOLS)


def example(name: str, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", f"examples.{name}", "--group", new_group(), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def test_a_feed_may_have_a_single_price() -> None:
    done = example("market_data", "--iface", "lo", "--prices", "1", "--subscribers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"subscriber 1: prices 1, gaps 0, age ([\d.]+) ms, 99 % within \1 ms\n", done.stdout)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["market_data", "--prices", "0"], "--prices: '0' is not allowed; a whole number from 1 on"),
        (["market_data", "--per-second", "0"], "--per-second: 0.0 is not allowed; a number above 0"),
        (["market_data", "--iface", "none"], "iface: 'none' is no device"),
        (["live_video", "--iface", "none"], "iface: 'none' is no device"),
        (["chat", "--name", "Ada", "--iface", "none"], "iface: 'none' is no device"),
    ],
)
def test_an_example_refuses_what_it_can_not_do_without_a_traceback(command: list[str], expected: str) -> None:
    done = example(*command)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_pictures_come_before_their_deadline() -> None:
    viewer = run(play(new_group(), "127.0.0.1", 10))
    assert viewer.shown + viewer.late == 10
    # A machine that is busy with other tests may be late with some.
    assert viewer.shown >= 5

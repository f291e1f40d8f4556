"""`mcastlab console`, driven by textual's pilot and on a terminal of its own."""

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from emu.namespaces import run_isolated
from experiments.cli import invoke
from experiments.contract.worlds import new_group
from experiments.monitor.console import TABLES, ConsoleApp, RowsTable
from experiments.monitor.domain import Connection, Reading
from experiments.monitor.watcher import Watcher
from protocols.rate_history import Flow, Rate
from tests.support.transfers import COMMAND


def flow(total: float, now: float) -> Flow:
    """Return a counter with a rate."""
    return Flow(total, (Rate(now, 2 * now, "12:00:00.000"), Rate(now / 2, now, None), Rate(now / 4, now, None)))


def publisher(number: int, rate: float = 1000.0) -> Reading:
    """Return a publisher."""
    flows = {"messages_sent": flow(10 * rate, rate), "bytes_sent": flow(500 * rate, 50 * rate)}
    made = Connection(
        "1", f"239.0.0.1:{5000 + number}", "publisher", flows=flows, publishers=1, requests={"requests_in": number}
    )
    return Reading("239.1.1.1:4242", f"feed {number:02}", "host 10.0.0.1", [made])


def subscriber(queue: int = 0, rate: float = 900.0) -> Reading:
    """Return a subscriber with updates that wait."""
    flows = {"messages_received": flow(9 * rate, rate), "bytes_received": flow(450 * rate, 45 * rate)}
    made = Connection(
        *("1", "239.0.0.1:5000", "subscriber"),
        flows=flows,
        subscribers=1,
        subscriptions=3,
        queue=queue,
        members=["/quotes/..."],
    )
    return Reading("239.1.1.1:4242", "screen [bold]x[/]\x1b[31m", "host 10.0.0.2", [made])


def shown(app: ConsoleApp) -> list[list[str]]:
    """Return the cells of the table that is shown."""
    table = app.table
    return [[str(cell) for cell in table.get_row(row.key)] for row in table.ordered_rows]


def check(script: Callable[[ConsoleApp, Pilot[None], Callable[..., None]], Awaitable[None]], **options: Any) -> None:
    """Run a console without anybody to watch; the script gives it readings."""

    async def main() -> None:
        watcher = Watcher()
        app = ConsoleApp(watcher, watches=False)
        now = [1000.0]

        def tell(**readings: Reading) -> None:
            now[0] += 1.0
            watcher.domain.update(now[0], readings)
            app.refresh_rows()

        async with app.run_test(size=options.get("size", (150, 30))) as pilot:
            await script(app, pilot, tell)

    asyncio.run(main())


def test_rows_come_change_and_go() -> None:
    async def script(app: ConsoleApp, pilot: Pilot[None], tell: Callable[..., None]) -> None:
        tell(a=publisher(1), b=subscriber())
        await pilot.pause()
        assert [row[:2] for row in shown(app)] == [
            ["feed 01", "239.0.0.1:5001"],
            ["screen [bold]x[/]\\x1b[31m", "239.0.0.1:5000"],
        ]
        assert shown(app)[0][3:5] == ["1k", "0"]
        tell(a=publisher(1, 2500.0), b=subscriber(queue=5000))
        assert shown(app)[0][3] == "2.5k"
        assert shown(app)[1][2] == "lags"
        assert "5.6 s" in shown(app)[1]
        tell(a=publisher(1, 2500.0))
        assert shown(app)[1][2] == "gone"
        assert "screen" in str(app.query_one("#news").render())
        for _ in range(31):
            tell(a=publisher(1, 2500.0))
        assert len(shown(app)) == 1

    check(script)


def test_only_cells_that_change_are_written() -> None:
    async def script(app: ConsoleApp, pilot: Pilot[None], tell: Callable[..., None]) -> None:
        everybody = {f"p{number}": publisher(number) for number in range(20)}
        tell(**everybody)
        before = app.table.written
        assert before == 20 * len(TABLES["connections"][0])
        tell(**everybody)
        assert app.table.written == before
        tell(**everybody | {"p3": publisher(3, 1100.0)})
        # Messages and bits per second of one row.
        assert app.table.written == before + 2

    check(script)


def test_tables_are_sorted_and_reversed() -> None:
    async def script(app: ConsoleApp, pilot: Pilot[None], tell: Callable[..., None]) -> None:
        tell(a=publisher(1, 10.0), b=publisher(2, 30.0), c=publisher(3, 20.0), d=subscriber())
        await pilot.press("3")
        await pilot.pause()
        assert [row[0] for row in shown(app)] == ["feed 01", "feed 02", "feed 03"]
        await pilot.press("s", "s", "s", "r")
        assert [row[0] for row in shown(app)] == ["feed 02", "feed 03", "feed 01"]
        tell(a=publisher(1, 40.0), b=publisher(2, 30.0), c=publisher(3, 20.0), d=subscriber())
        assert [row[0] for row in shown(app)] == ["feed 01", "feed 02", "feed 03"]
        assert "by sent/s down" in str(app.query_one("#line").render())
        await pilot.press("S", "S", "S", "r")
        assert "by process up" in str(app.query_one("#line").render())

    check(script)


@pytest.mark.parametrize(("key", "name", "count"), [("1", "processes", 3), ("3", "publishers", 2), ("4", "subscribers", 1)])
def test_each_table_has_its_rows(key: str, name: str, count: int) -> None:
    async def script(app: ConsoleApp, pilot: Pilot[None], tell: Callable[..., None]) -> None:
        tell(a=publisher(1), b=publisher(2), c=subscriber(queue=7))
        await pilot.press(key)
        await pilot.pause()
        assert app.table is app.query_one(f"#{name} RowsTable", RowsTable)
        assert len(shown(app)) == count
        assert len(shown(app)[0]) == len(TABLES[name][0])

    check(script)


def test_a_filter_keeps_the_rows_with_all_words() -> None:
    async def script(app: ConsoleApp, pilot: Pilot[None], tell: Callable[..., None]) -> None:
        tell(a=publisher(1), b=publisher(2), c=subscriber())
        await pilot.press("slash", *"feed 02", "enter")
        assert [row[0] for row in shown(app)] == ["feed 02"]
        tell(a=publisher(1), b=publisher(2), c=subscriber(), d=publisher(3))
        assert [row[0] for row in shown(app)] == ["feed 02"]
        await pilot.press("slash")
        await pilot.press("escape")
        assert len(shown(app)) == 4
        await pilot.press("slash", *"quotes")
        assert len(shown(app)) == 1

    check(script)


def test_a_paused_console_keeps_what_it_shows() -> None:
    async def script(app: ConsoleApp, pilot: Pilot[None], tell: Callable[..., None]) -> None:
        tell(a=publisher(1))
        await pilot.press("p")
        tell(a=publisher(1, 5000.0), b=publisher(2))
        assert [row[3] for row in shown(app)] == ["1k"]
        assert "PAUSED" in str(app.query_one("#line").render())
        await pilot.press("p")
        assert [row[3] for row in shown(app)] == ["5k", "1k"]

    check(script)


@pytest.mark.parametrize("size", [(40, 8), (80, 24), (220, 60)])
def test_every_size_of_a_terminal_will_do(size: tuple[int, int]) -> None:
    async def script(app: ConsoleApp, pilot: Pilot[None], tell: Callable[..., None]) -> None:
        tell(**{f"p{number}": publisher(number) for number in range(100)})
        await pilot.pause()
        assert len(shown(app)) == 100

    check(script, size=size)


def test_without_a_terminal_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["console"]) == 3
    assert "console needs a terminal; mcastlab monitor" in capsys.readouterr().err


def test_without_a_terminal_it_tells_what_it_finds_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    group = f"239.7.7.31:{6000 + os.getpid() % 1000}"
    receiver = subprocess.Popen([*COMMAND, "stream", "recv", "--group", group, "--iface", "lo"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(10):
            assert invoke(["console", "--json", "--management", "off"]) == 0
            rows = json.loads(capsys.readouterr().out)["rows"]
            if any(row["connection"] == group and row["role"] == "receiver" for row in rows):
                break
        else:
            pytest.fail("the receiver is not listed")
    finally:
        receiver.terminate()
        receiver.wait()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--management", "10.0.0.1:4242"], "--management: value '10.0.0.1:4242' is not allowed; an IPv4 multicast address"),
        (["--management", "nowhere"], "--management: 'nowhere' is not an address and a port"),
        (["--iface", "no-such"], "--iface: 'no-such' is no device with an IPv4 address"),
    ],
)
def test_other_options_are_one_line_and_exit_code_2(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["console", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


class Terminal:
    """A process on a terminal of its own, 100 columns wide."""

    def __init__(self, *options: str) -> None:
        self._master, other = pty.openpty()
        size = {"COLUMNS": "100", "LINES": "30", "TERM": "xterm-256color"}
        command = [*COMMAND, "console", *options]
        self.process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env={**os.environ, **size})
        os.close(other)

    def read(self, seconds: float, until: str = "\0") -> bytes:
        """Return what is written for some seconds, or until a text is."""
        end, data = time.monotonic() + seconds, b""
        while until.encode() not in data and (left := end - time.monotonic()) > 0:
            if select.select([self._master], [], [], left)[0]:
                try:
                    data += os.read(self._master, 65536)
                except OSError:
                    break
        return data

    def press(self, keys: str) -> None:
        """Type something."""
        os.write(self._master, keys.encode())

    def close(self) -> None:
        """End the process if it runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)


def use_a_terminal() -> None:
    """Start a console on a terminal and a publisher, and check what is written on it."""
    management, group = new_group(), new_group()
    terminal = Terminal("--management", management, "--iface", "lo")
    try:
        assert terminal.read(20.0, until="connections;")
        feed = [
            *COMMAND,
            "pub",
            "--protocol",
            "distributor",
            "--group",
            group,
            "--iface",
            "lo",
            "--management",
            management,
            "--application",
            "feed",
        ]
        with subprocess.Popen(feed, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdin is not None
            process.stdin.write(b"/a one\n")
            process.stdin.flush()
            assert "feed" in terminal.read(8.0, until="feed").decode(errors="replace")
            terminal.read(3.0)
            quiet = terminal.read(3.0)
            # A terminal of 9600 bit/s takes 960 bytes in a second.
            assert len(quiet) < 3 * 300
            process.stdin.close()
            process.wait(20)
            assert re.search("gone", terminal.read(8.0, until="gone").decode(errors="replace"))
        terminal.press("q")
        terminal.read(10.0)
        assert terminal.process.wait(10) == 0
    finally:
        terminal.close()


@pytest.mark.emu
@pytest.mark.timed
def test_on_a_terminal_it_shows_a_publisher_writes_little_and_ends_with_q() -> None:
    # It shows the sessions of the machine, so it is in namespaces of its own.
    run_isolated(use_a_terminal)

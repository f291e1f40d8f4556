"""`mcastlab monitor` as a process: the page in a browser, JSON, metrics, tokens, and errors of its options."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from experiments.cli import invoke
from experiments.contract.worlds import new_group
from experiments.monitor.announcement import Announcement
from protocols.registry import protocol
from protocols.snapshot import Snapshot, buffers
from tests.support.browser import Browser, browser
from tests.support.page_checks import FAINT, OUTSIDE, OVERLAPS
from tests.support.transfers import COMMAND

EVIL = "\"><img src=x onerror=\"document.title='stolen'\"><script>document.title='stolen'</script>"


@contextmanager
def monitor(*options: str) -> Iterator[str]:
    """Start a monitor on a free port; yield its address."""
    started = [*COMMAND, "monitor", "--listen", "127.0.0.1:0", "--iface", "lo", "--json", *options]
    process = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()
        yield json.loads(line)["url"]
    finally:
        process.terminate()
        _, err = process.communicate(timeout=20)
        assert err == ""


@contextmanager
def announced(snapshot: Callable[[], Snapshot]) -> Iterator[None]:
    """Announce a session of this process."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    begin = time.monotonic()
    announcement = Announcement(loop, lambda: (time.monotonic() - begin, snapshot()), protocol("norm").measures)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(announcement.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def receiving() -> Snapshot:
    """Return a session whose goodput is 1000 bytes per second, with names that would like to be markup."""
    objects = [Snapshot("object", EVIL, {"size": 5000, "bytes_received": 100}, {"state": EVIL})]
    sender = Snapshot("sender", EVIL, {"loss": 0.125, "data_lost": 3}, {"activity": "active"}, objects)
    values = {"bytes_received": 1000 * time.monotonic(), "nacks_sent": 2}
    parts = (sender, *buffers({"pending objects": (1, 256)}))
    return Snapshot(
        "host", "127.0.0.1", {"packets_sent": 1}, parts=(Snapshot("session", EVIL, values, {"role": "receiver"}, parts),)
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start a monitor for the tests of this module."""
    with monitor() as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start a browser for the tests of this module."""
    with browser() as made:
        yield made


def read(address: str, **headers: str) -> tuple[int, bytes]:
    """Return status and content of a page."""
    try:
        with urlopen(Request(address, headers=headers), timeout=10) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def own(url: str, **headers: str) -> list[dict[str, Any]]:
    """Return the sessions of this process that a monitor knows."""
    status, content = read(f"{url}api/sessions", **headers)
    assert status == 200
    return [session for session in json.loads(content)["sessions"] if session["pid"] == os.getpid()]


def own_row(url: str) -> dict[str, Any]:
    """Return the row of this process that is newest."""
    rows = [row for row in json.loads(read(f"{url}api/domain")[1])["rows"] if f"process {os.getpid()}" in row["place"]]
    found: dict[str, Any] = rows[-1]
    return found


def until(condition: Callable[[], object], seconds: float) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_session_comes_and_goes_within_three_seconds(url: str) -> None:
    with announced(receiving):
        until(lambda: own(url), 3.0)
        until(lambda: own_row(url)["flows"]["bytes_received"][1][0], 3.0)
        assert own_row(url)["flows"]["bytes_received"][1][0] == pytest.approx(1000, rel=0.1)
        (session,) = own(url)
        assert session["statistics"]["parts"][0]["parts"][0]["values"]["loss"] == 0.125
        text = read(f"{url}metrics")[1].decode()
        samples = [row for family in text_string_to_metric_families(text) for row in family.samples]
        losses = [row for row in samples if row.name == "mcastlab_sender_loss_ratio" and row.labels["sender"] == EVIL]
        assert [row.value for row in losses] == [0.125]
        name = own_row(url)["session"]
        assert json.loads(read(f"{url}api/session?name={quote(name)}")[1])["pid"] == os.getpid()
        assert read(f"{url}api/session?name=elsewhere") == (200, b"null")
    until(lambda: own_row(url)["state"] == "gone", 3.0)
    assert not own(url)


ROW = "[...document.querySelectorAll('tr.row:not(.gone)')].find((each) => each.textContent.includes('{}'))"
BAD = "document.querySelectorAll('main img, main script, #news img, #news script').length"


@pytest.mark.peer("chromium")
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1400, False)])
def test_the_page_shows_a_session_live_and_escapes_everything(url: str, chromium: Browser, width: int, dark: bool) -> None:
    row = ROW.format(f"process {os.getpid()}")
    page = chromium.open(url, width, dark=dark)
    assert not page.run(f"Boolean({row})")
    with announced(receiving):
        page.wait(f"{row} && {row}.textContent.includes('kbit/s')")
        page.run(f"{row}.click()")
        page.wait("document.querySelector('.detail').textContent.includes('12.5 %')")
        text = page.run("document.body.innerText")
        assert EVIL in text
        page.wait(f"{row}.querySelector('polyline').getAttribute('points').split(' ').length > 2")
        assert page.run("document.title") == "mcastlab monitor"
        assert page.run(BAD) == 0
        assert page.run(OVERLAPS) == []
        assert page.run(OUTSIDE) == []
        assert page.run(FAINT) == []
        page.run("document.getElementById('filter').value = 'nothing of this name'")
        page.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
        assert page.run("document.querySelectorAll('tr.row').length") == 0
        page.run("document.getElementById('filter').value = ''")
        page.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
        gone = time.monotonic()
    page.wait(f"!{row}")
    assert time.monotonic() - gone < 3.5
    assert page.console_errors(url) == []


SLOW = """
import asyncio, sys, mcastlab

async def main():
    group, management = sys.argv[1:]
    async with mcastlab.distributor(group, "127.0.0.1", application="slow screen", management=management) as connection:
        updates = connection.subscribe("/quotes/...")
        while True:
            await anext(updates)
            await asyncio.sleep(0.05)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.peer("chromium")
@pytest.mark.parametrize(("width", "dark"), [(390, False), (1400, True)])
def test_the_page_shows_a_publisher_a_subscriber_that_lags_and_their_deaths(chromium: Browser, width: int, dark: bool) -> None:
    group, management = new_group(), new_group()
    with monitor("--management", management) as url:
        page = chromium.open(url, width, dark=dark)
        publish = [
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
            "ticker",
        ]
        publish += ["--subject", "/quotes/ABB", "--size", "50", "--rate", "2000"]
        slow = subprocess.Popen([sys.executable, "-c", SLOW, group, management])
        ticker = subprocess.Popen([*COMMAND, *publish], stderr=subprocess.DEVNULL)
        try:
            feed, screen = ROW.format("ticker"), ROW.format("slow screen")
            page.wait(f"{feed} && {screen}")
            page.wait(f"/(1[.]9[0-9]*|2([.][0-9]+)?) k[/]s/.test({feed}.textContent)")
            page.wait(f"/lags [1-9]/.test({screen}.textContent)")
            page.run(f"{screen}.click()")
            assert "/quotes/..." in page.run("document.querySelector('.detail').innerText")
            assert page.run(OVERLAPS) == []
            assert page.run(OUTSIDE) == []
            assert page.run(FAINT) == []
            for process, row in ((ticker, feed), (slow, screen)):
                process.kill()
                gone = time.monotonic()
                page.wait(f"!{row}")
                assert time.monotonic() - gone < 3.0
            assert re.search("ticker .* gone", page.run("document.getElementById('events').innerText"))
        finally:
            for process in (ticker, slow):
                process.kill()
                process.wait()
        assert page.console_errors(url) == []


@pytest.mark.peer("chromium")
def test_a_paused_page_keeps_what_it_shows_and_goes_on_with_everything(url: str, chromium: Browser) -> None:
    page = chromium.open(url)
    page.run("document.getElementById('pause').click()")
    with announced(receiving):
        until(lambda: own(url), 3.0)
        time.sleep(1.5)
        assert page.run("document.getElementById('status').textContent") == "paused"
        assert not page.run(f"Boolean({ROW.format(os.getpid())})")
        page.run("document.getElementById('pause').click()")
        page.wait(f"{ROW.format(os.getpid())}")
    assert page.console_errors(url) == []


@pytest.mark.peer("chromium")
def test_the_page_says_when_the_monitor_has_ended(chromium: Browser) -> None:
    with monitor() as address:
        page = chromium.open(address)
        assert "process" in page.run("document.getElementById('status').textContent")
    page.wait("document.getElementById('status').textContent === 'the monitor does not answer'")


def test_another_name_of_the_address_is_refused(url: str) -> None:
    assert read(url)[0] == 200
    assert read(url, Host="evil.example") == (421, b"this name is not mine\n")
    assert read(f"{url}nothing")[0] == 404


def test_with_a_token_nothing_is_told_without_it(tmp_path: Path) -> None:
    token, file = "correct-horse-battery", tmp_path / "token"
    file.write_text(f"{token}\n")
    with monitor("--token-file", str(file)) as address:
        for path in (
            "",
            "api/sessions",
            "api/session?name=x",
            "api/domain",
            "metrics",
            "events",
            "monitor.js",
            "format.js",
            "base.css",
            "?token=wrong",
            f"api/sessions?token={token}",
        ):
            assert read(f"{address}{path}")[0] == 401, path
        assert read(address, Authorization="Bearer wrong")[0] == 401
        assert own(address, Authorization=f"Bearer {token}") == []
        assert own(address, Cookie=f"mcastlab-token={token}") == []
        host, port = address.removeprefix("http://").strip("/").split(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(f"GET /?token={token} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            answer = connection.recv(4096).decode().lower()
        assert "303" in answer.splitlines()[0]
        assert "httponly" in answer
        assert "samesite=strict" in answer


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "0.0.0.0:0"], "without --token-file; others can reach this address"),
        (["--listen", "host:80"], "an IP address and a port"),
        (["--listen", "127.0.0.1:99999"], "an IP address and a port"),
        (["--token-file", "no-such-file"], "no-such-file: No such file or directory"),
    ],
)
def test_other_options_are_one_line_and_exit_code_2(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["monitor", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_short_token_and_a_port_in_use_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_text("short")
    assert invoke(["monitor", "--token-file", str(tmp_path / "token")]) == 2
    assert "one word of at least 16 ASCII characters" in capsys.readouterr().err
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert invoke(["monitor", "--listen", f"127.0.0.1:{other.getsockname()[1]}"]) == 2
    assert "can't be used (Address already in use)" in capsys.readouterr().err


def test_ctrl_c_ends_it_with_pages_open() -> None:
    process = subprocess.Popen(
        [*COMMAND, "monitor", "--listen", "127.0.0.1:0", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["url"]
    with urlopen(f"{address}events", timeout=10) as events:
        assert events.readline().startswith(b"data: {")
        begin = time.monotonic()
        process.send_signal(2)
        _, err = process.communicate(timeout=20)
        assert time.monotonic() - begin < 3.0
    assert (process.returncode, err) == (130, "")

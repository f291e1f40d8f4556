"""What the monitor knows: sessions are found, asked, shown with rates, and forgotten."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.monitor.announcement import PREFIX, Announcement
from experiments.monitor.discovery import DEEPEST, MOST_PARTS, Answer, Questioning, ask, read_answer, read_time, running
from experiments.monitor.domain import HISTORY, Connection, Reading
from experiments.monitor.feed import EmulationFeed
from experiments.monitor.sessions import SessionSource
from experiments.monitor.watcher import MOST_SHOWN, Watcher, shortened
from protocols.rate_history import Flow, Rate
from protocols.registry import protocol
from protocols.snapshot import MEASURES, Snapshot

NORM = protocol("norm").measures


def host(received: float, objects: int = 0) -> Snapshot:
    """Return a host with one session."""
    parts = [Snapshot("object", str(n), {"size": 5}) for n in range(objects)]
    return Snapshot("host", "h", parts=(Snapshot("session", "g", {"bytes_received": received}, {"role": "receiver"}, parts),))


def answer(at: float, snapshot: Snapshot) -> Answer:
    """Return the answer of a session."""
    return Answer(7, "recv", at, snapshot, MEASURES)


class Scripted:
    """A session that answers what a function returns."""

    def __init__(self, name: str, answer_of: Callable[[str], Answer | None]) -> None:
        self.name, self.answer_of = name, answer_of
        self.answer: Answer | None = None

    def ask(self) -> None:
        self.answer = self.answer_of(self.name)

    async def wait(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def source(find: Callable[[], list[str]], answer_of: Callable[[str], Answer | None]) -> SessionSource:
    """Return a source of scripted sessions."""
    return SessionSource(find, lambda name: Scripted(name, answer_of))


def test_a_session_is_found_asked_and_gone() -> None:
    async def check() -> None:
        before = set(running())
        told = [(1.5, host(1000))]
        announcement = Announcement(asyncio.get_running_loop(), lambda: told[0], NORM)
        (name,) = set(running()) - before
        assert name.startswith(f"{PREFIX}{os.geteuid()}/{os.getpid()}/")
        first = await ask(name)
        assert first is not None
        assert (first.pid, first.time, first.statistics) == (os.getpid(), 1.5, read(host(1000)))
        assert first.measures["grtt"].unit == "seconds"
        told[0] = (2.5, host(4000))
        answers = await asyncio.gather(*(ask(name) for _ in range(5)))
        assert all(each is not None and each.time == 2.5 for each in answers)
        announcement.close()
        assert set(running()) == before
        assert await ask(name) is None

    asyncio.run(check())


def read(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as it is read from JSON."""
    return read_answer(
        {"measures": [], "pid": 1, "command": "", "statistics": json.loads(json.dumps(snapshot.plain()))}
    ).statistics


def test_a_session_is_asked_again_on_its_connection_and_the_same_statistics_are_not_read_again() -> None:
    async def check() -> None:
        before, told = set(running()), [(1.0, host(1000))]
        announcement = Announcement(asyncio.get_running_loop(), lambda: told[0], NORM)
        (name,) = set(running()) - before
        with Questioning(name) as questioning:
            answers = []
            for at, received in ((1.0, 1000), (2.0, 1000), (3.0, 1500)):
                told[0] = (at, host(received))
                questioning.ask()
                await questioning.wait()
                assert questioning.answer is not None
                answers.append(questioning.answer)
            assert len(announcement._clients) == 1
            assert [each.time for each in answers] == [1.0, 2.0, 3.0]
            assert answers[1].statistics is answers[0].statistics
            assert answers[2].statistics == read(host(1500))
            announcement.close()
            questioning.ask()
            await questioning.wait()
            assert questioning.answer is None

    asyncio.run(check())


def test_those_that_do_not_answer_are_waited_for_once() -> None:
    async def check() -> None:
        servers = [socket.socket(socket.AF_UNIX) for _ in range(5)]
        names = [f"{PREFIX}{os.geteuid()}/1/{os.urandom(4).hex()}" for _ in servers]
        for server, name in zip(servers, names, strict=True):
            server.bind(f"\0{name}")
            server.listen()
        watcher, began = Watcher(SessionSource(lambda: names)), time.monotonic()
        await watcher.look()
        assert time.monotonic() - began < 2.5
        assert watcher.domain.rows == []
        watcher.sessions.close()
        for server in servers:
            server.close()

    asyncio.run(check())


def test_who_listens_under_such_a_name_and_says_nothing_is_not_waited_for() -> None:
    async def check(say: Callable[[socket.socket], None]) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            name = f"{PREFIX}{os.geteuid()}/1/{os.urandom(4).hex()}"
            server.bind(f"\0{name}")
            server.listen()
            asking = asyncio.create_task(ask(name))
            await asyncio.sleep(0.05)
            connection, _ = server.accept()
            with connection:
                say(connection)
                assert await asking is None

    asyncio.run(check(lambda connection: None))
    asyncio.run(check(lambda connection: connection.sendall(b'1.0\n{"pid"')))
    asyncio.run(check(lambda connection: connection.sendall(b"nan\n{}\n")))


def test_rates_and_a_history_are_kept_while_a_session_lives() -> None:
    times = iter(range(HISTORY + 30))
    names = ["a"]

    def question(name: str) -> Answer | None:
        now = float(next(times))
        return answer(now, host(100.0 * now)) if name == "a" else None

    async def check() -> None:
        watcher = Watcher(source(lambda: names, question), clock=lambda: 1e9)
        await watcher.look()
        for _ in range(HISTORY + 5):
            await watcher.look()
        (row,) = watcher.whole()["rows"]
        assert (row["process"], row["connection"], row["role"]) == ("recv", "g", "receiver")
        assert row["flows"]["bytes_received"][1][0] == 100.0
        assert len(row["points"]) == HISTORY
        (change,) = json.loads(watcher.update())["rows"]
        assert change == {name: value for name, value in row.items() if name != "points"}
        names[:] = ["b"]
        await watcher.look()
        told = json.loads(watcher.update())
        assert ([row["state"] for row in told["rows"]], told["events"][0][2]) == (["gone"], "gone")
        await watcher.look()
        assert json.loads(watcher.update()) == {"rows": [], "removed": [], "events": []}

    asyncio.run(check())


def test_of_many_objects_some_are_shown() -> None:
    snapshot = host(1, objects=MOST_SHOWN + 20)
    assert len(shortened(snapshot).parts[0].parts) == MOST_SHOWN

    def question(name: str) -> Answer | None:
        return answer(1.0, snapshot)

    async def check() -> None:
        watcher = Watcher(source(lambda: ["a"], question))
        await watcher.look()
        whole, _ = watcher.snapshot()
        assert len(whole.parts[0].parts[0].parts[0].parts) == MOST_SHOWN + 20

    asyncio.run(check())


class Managed:
    """A management source with one process."""

    is_closed = False

    def process_ids(self) -> list[int]:
        return [7]

    def readings(self) -> dict[str, Reading]:
        flows = {"messages_sent": Flow(40, (Rate(4.0), Rate(3.0), Rate(2.0)))}
        return {"process/10.0.0.1:99/7": Reading("d", "feed", "h", [Connection("1", "g:1", "publisher", flows=flows)])}

    def close(self) -> None:
        self.is_closed = True


def test_a_process_that_management_tells_of_is_one_row_and_is_asked_for_more_on_demand() -> None:
    asked: list[str] = []

    def question(name: str) -> Answer | None:
        asked.append(name)
        return Answer(7, "pub", 1.0, host(5), MEASURES, managed=7 if name == "own" else 8)

    async def check() -> None:
        watcher = Watcher(source(lambda: ["own", "other"], question), Managed)
        for _ in range(3):
            await watcher.look()
        # The first look learns whose session it is; the other process is on no group that is watched.
        assert [asked.count(name) for name in ("own", "other")] == [1, 3]
        assert [(row["process"], row["session"]) for row in watcher.whole()["rows"]] == [("pub", "other"), ("feed", "own")]
        found = await watcher.sessions.ask("own")
        assert found is not None
        assert found.statistics == host(5)
        assert await watcher.sessions.ask("elsewhere") is None
        snapshot, _ = watcher.snapshot()
        assert snapshot.values["processes"] == 2
        (feed,) = [part for part in snapshot.parts if part.name.startswith("feed")]
        assert feed.parts[0].values["messages_published"] == 40

    asyncio.run(check())


def test_hosts_of_an_emulation_are_processes_of_a_domain() -> None:
    feed = EmulationFeed("storm")
    with feed:
        name = next(name for name in running() if name.split("/")[2] == str(os.getpid()))

        async def check() -> None:
            watcher = Watcher(SessionSource(lambda: [name]))
            asyncio.get_running_loop().add_reader(feed.socket, feed.answer)
            await watcher.look()
            assert watcher.domain.rows == []
            for second in (1.0, 2.0):
                census = {
                    "r1": {"at": second, "packets": 3.0, "octets": 60.0, "bytes_received": 500.0 * second, "nacks_sent": 2}
                }
                feed.take(second, census)
                await watcher.look()
            (row,) = watcher.domain.rows
            assert (row.domain, row.process, row.requests["requests_out"]) == ("emulation storm", "r1", 2)
            assert row.flows["bytes_received"].rates[0].current == 500.0

        asyncio.run(check())
    assert name not in running()


def test_only_listening_sockets_of_this_user_are_sessions(tmp_path: Path) -> None:
    own, other = os.geteuid(), os.geteuid() + 1
    rows = [
        "Num       RefCount Protocol Flags    Type St Inode Path",
        f"0: 2 0 00010000 0001 01 1 @{PREFIX}{own}/5/aa",
        f"0: 3 0 00000000 0001 03 2 @{PREFIX}{own}/5/aa",
        f"0: 2 0 00010000 0001 01 3 @{PREFIX}{other}/6/bb",
        "0: 2 0 00010000 0001 01 4 /run/other",
        "0: 2 0 00010000 0001 01 5",
    ]
    table = tmp_path / "unix"
    table.write_text("\n".join(rows))
    assert running(table) == [f"{PREFIX}{own}/5/aa"]


GOOD: dict[str, Any] = {"pid": 1, "command": "c", "measures": [], "statistics": {"part": "host"}}


@pytest.mark.parametrize(
    "change",
    [
        {"pid": "x"},
        {"managed": "x"},
        {"managed": [1]},
        {"measures": [["a", "b"]]},
        {"measures": [["a", "counter", "miles", ""]]},
        {"statistics": {"name": "no part"}},
        {"statistics": {"part": "host", "values": {"a": True}}},
        {"statistics": {"part": "host", "values": {"a": float("inf")}}},
        {"statistics": {"part": "host", "parts": [{"part": "x"}] * MOST_PARTS}},
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error_of_few_kinds(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        read_answer({**GOOD, **change})


@pytest.mark.parametrize("plain", ["nan", None, float("inf"), [1], {}])
def test_a_time_that_is_none_is_an_error(plain: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_time(plain)


def test_a_tree_may_not_be_too_deep() -> None:
    tree: dict[str, Any] = {"part": "x"}
    for _ in range(DEEPEST + 1):
        tree = {"part": "x", "parts": [tree]}
    with pytest.raises(ValueError, match="too many parts"):
        read_answer({**GOOD, "statistics": tree})


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_is_an_answer_or_one_of_these_errors(plain: Any) -> None:
    for tried in (plain, {**GOOD, "statistics": plain}, {**GOOD, "statistics": {"part": "x", "parts": plain, "values": plain}}):
        try:
            read_answer(tried)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue

"""What the monitor knows: sessions are found, asked, shown with rates, and forgotten."""

import asyncio
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.monitor.announcement import PREFIX, Announcement
from experiments.monitor.discovery import DEEPEST, MOST_PARTS, Answer, ask, read_answer, running
from experiments.monitor.watcher import HISTORY, MOST_SHOWN, Watcher
from protocols.registry import protocol
from protocols.snapshot import MEASURES, Snapshot

NORM = protocol("norm").measures


def host(received: float, objects: int = 0) -> Snapshot:
    """Return a host with one session."""
    parts = [Snapshot("object", str(n), {"size": 5}) for n in range(objects)]
    return Snapshot("host", "h", parts=(Snapshot("session", "g", {"bytes_received": received}, {"role": "receiver"}, parts),))


def answer(time: float, snapshot: Snapshot) -> Answer:
    """Return the answer of a session."""
    return Answer(7, "recv", time, snapshot, MEASURES)


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
        {"measures": [], "time": 0, "pid": 1, "command": "", "statistics": json.loads(json.dumps(snapshot.plain()))}
    ).statistics


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
    asyncio.run(check(lambda connection: connection.sendall(b'{"time"')))


def test_rates_and_a_history_are_kept_while_a_session_lives() -> None:
    times = iter(range(HISTORY + 30))
    names = ["a"]

    async def question(name: str) -> Answer | None:
        now = float(next(times))
        return answer(now, host(100.0 * now)) if name == "a" else None

    async def check() -> None:
        watcher = Watcher(lambda: names, question)
        await watcher.look()
        assert watcher.sessions(whole=False)[0]["charted"] == {}
        assert watcher.sessions(whole=False)[0]["history"] == [(0.0, {})]
        for _ in range(HISTORY + 5):
            await watcher.look()
        (session,) = watcher.sessions()
        assert session["charted"] == {"bytes_received": 100.0}
        assert len(session["history"]) == HISTORY
        assert session["measures"]["bytes_received"] == ["counter", "bytes", MEASURES["bytes_received"].help]
        assert not {"history", "measures"} & watcher.sessions(whole=False)[0].keys()
        names[:] = ["b"]
        await watcher.look()
        assert watcher.sessions() == []

    asyncio.run(check())


def test_of_many_objects_some_are_shown() -> None:
    async def question(name: str) -> Answer | None:
        return answer(1.0, host(1, objects=MOST_SHOWN + 20))

    async def check() -> None:
        watcher = Watcher(lambda: ["a"], question)
        await watcher.look()
        session = watcher.sessions()[0]["statistics"]["parts"][0]
        assert len(session["parts"]) == MOST_SHOWN
        whole, _ = watcher.snapshot()
        assert len(whole.parts[0].parts[0].parts[0].parts) == MOST_SHOWN + 20

    asyncio.run(check())


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


GOOD: dict[str, Any] = {"pid": 1, "command": "c", "time": 1.0, "measures": [], "statistics": {"part": "host"}}


@pytest.mark.parametrize(
    "change",
    [
        {"pid": "x"},
        {"time": "nan"},
        {"time": None},
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

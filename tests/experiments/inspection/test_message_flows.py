"""Captures of FJM2: topics, priorities, latencies, and messages that the capture does not have whole."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.inspection.inspection import inspect_capture
from experiments.running.recording import Recording
from experiments.running.run import run
from experiments.scenario.scenario import parse

MESSAGES = 60


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run two publishers, of which one is heard by a subscriber that has every third packet lost and never repaired."""
    folder = tmp_path_factory.mktemp("run")
    work: dict[str, Any] = {"kind": "publish", "size": "4kB", "rate": "100/s", "count": MESSAGES}
    scenario = {
        "name": "flows",
        "topology": {
            "kind": "star",
            "receivers": 2,
            "link": {"rate": "10Mbit", "queue": 100, "delay": "5ms", "down": {"loss": 0.1}},
        },
        "protocol": {"name": "fjm2", "rate": "4Mbit", "grtt": "20ms", "cache_age": "1us"},
        "wire": "bytes",
        "workload": [
            {**work, "hosts": ["sender"], "to": "topic:prices", "priority": {"0": 1, "9": 1}},
            {**work, "hosts": ["r2"], "to": "topic:news"},
            {"kind": "subscribe", "hosts": ["r1"], "to": ["topic:prices", "topic:news"]},
        ],
        "duration": "20s",
    }
    run(parse(scenario, "flows"), recording=Recording(points=("sender", "r1"), captures=folder))
    return {"sender": folder / "sender.pcapng", "r1": folder / "r1.pcapng"}


def test_at_the_publisher_every_message_is_complete(captures: dict[str, Path]) -> None:
    rows = {row["topic"]: row for row in inspect_capture(captures["sender"]).plain()["topics"]}
    own = rows["prices"]
    assert (own["messages"], own["complete"], own["lost"], own["bytes"]) == (MESSAGES, MESSAGES, 0, 4000 * MESSAGES)
    assert set(own["priorities"]) == {"0", "9"}
    assert sum(own["priorities"].values()) == MESSAGES
    # A message of three packets at 4 Mbit/s.
    assert 0.004 < own["latency_p50"] < 0.05 <= 0.05 + own["latency_p99"]


def test_at_a_subscriber_lost_messages_and_the_way_show(captures: dict[str, Path]) -> None:
    there, here = (inspect_capture(captures[name]).plain()["topics"] for name in ("sender", "r1"))
    rows = {row["topic"]: row for row in here}
    own = next(row for row in there if row["topic"] == "prices")
    assert rows["prices"]["lost"] > 3
    assert rows["prices"]["lost"] + rows["prices"]["complete"] == rows["prices"]["messages"] <= MESSAGES
    assert rows["prices"]["latency_p50"] > own["latency_p50"] + 0.004
    assert rows["news"]["priorities"] == {"4": rows["news"]["messages"]}


def test_the_command_tells_of_topics(captures: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["inspect", str(captures["sender"]), "--wide"]) in (0, 1)
    shown = capsys.readouterr().out
    assert "messages of FJM2" in shown
    assert "prices" in shown
    assert invoke(["inspect", str(captures["sender"]), "--json"]) in (0, 1)
    assert {row["topic"] for row in json.loads(capsys.readouterr().out)["topics"]} >= {"prices"}


def test_a_capture_of_other_objects_has_no_topics(tmp_path: Path) -> None:
    scenario = {
        "name": "files",
        "topology": {"kind": "star", "receivers": 1},
        "protocol": {"name": "norm"},
        "wire": "bytes",
        "workload": [{"kind": "file", "from": "sender", "size": "20kB"}],
    }
    run(parse(scenario, "files"), recording=Recording(points=("sender",), captures=tmp_path))
    assert "topics" not in inspect_capture(tmp_path / "sender.pcapng").plain()

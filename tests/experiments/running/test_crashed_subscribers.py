"""Crashes of publishers, subscribers and servers in both worlds: subscriptions end, and counters are those of all lives."""

from typing import Any

import pytest

from experiments.running.lives import add_counts, until_crash
from experiments.running.run import run
from experiments.scenario.scenario import parse

BASE: dict[str, Any] = {
    "name": "crashed",
    "topology": {"kind": "lan", "receivers": 2, "link": {"rate": "10Mbit", "queue": 200}},
    "protocol": {"name": "fjm2", "rate": "5Mbit", "grtt": "20ms"},
    "workload": [
        {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": 1000, "rate": "50/s", "at": "500ms", "count": 75},
        {"kind": "subscribe", "hosts": ["r1", "r2"], "to": "topic:t"},
    ],
    "duration": "20s",
}


@pytest.mark.parametrize("backend", ["sim", pytest.param("emu", marks=pytest.mark.emu)])
@pytest.mark.parametrize("back", [{}, {"for": "300ms"}])
def test_a_crash_ends_a_subscription(back: dict[str, str], backend: str) -> None:
    result = run(parse({**BASE, "faults": [{"at": "1s", "crash": "r2", **back}]}, "test"), backend)
    assert result.completed
    assert result.messages is not None
    well, crashed = result.messages["subscriptions"]
    assert (well["due"], well["delivered"], well["interruptions"]) == (75, 75, 0)
    assert crashed["promised"] == crashed["delivered"] < 75
    assert (crashed["missing"], crashed["interruptions"]) == (0, 1)


def test_only_open_spans_of_subscribers_that_crashed_end() -> None:
    spans = {"subscriptions": [{"spans": [[0.0, 1.0, "unsubscribed"], [2.0, None, ""]]}]}
    sender, subscriber = {"role": "sender", "sent": []}, {"role": "subscriber", **spans}
    assert until_crash(subscriber) == subscriber
    found = until_crash({"role": "composite", "parts": [sender, subscriber], "crashed_at": 3.0})
    ended = [part.get("subscriptions") for part in found["parts"]]
    assert ended == [None, [{"spans": [[0.0, 1.0, "unsubscribed"], [2.0, 3.0, "crashed"]]}]]


@pytest.mark.parametrize("backend", ["sim", pytest.param("emu", marks=pytest.mark.emu)])
def test_counters_of_clients_are_those_of_all_lives(backend: str) -> None:
    faults = [{"at": "1s", "crash": "sender", "for": "300ms"}, {"at": "1.5s", "crash": "r2", "for": "200ms"}]
    result = run(parse({**BASE, "faults": faults}, "test"), backend)
    assert result.messages is not None
    clients, rows = result.metrics["clients"], result.messages["subscriptions"]
    # A process is killed anywhere, perhaps between the count of a message and its entry in the account.
    off = 0 if backend == "sim" else 1
    published = result.metrics["messages"]["published"]
    assert clients["publisher sender"]["messages_published"] == pytest.approx(published, abs=off)
    assert clients["publisher sender"]["longest_queues"][4] >= 1
    assert published < 75
    for row, host in zip(rows, ("r1", "r2"), strict=True):
        received = clients[f"subscriber {host}"]["messages_received"]
        assert received == pytest.approx(row["delivered"] + row["repeated"], abs=off)


def test_counters_of_a_publisher_that_leaves_and_of_a_server_are_those_of_all_lives() -> None:
    churned = run(parse({**BASE, "faults": [{"at": "1s", "churn": "sender", "for": "300ms"}]}, "test"))
    published = churned.metrics["messages"]["published"]
    assert churned.metrics["clients"]["publisher sender"]["messages_published"] == published
    relay = {"protocol": {"name": "relay"}, "nodes": {"r2": {"role": "relay"}}, "duration": "5s"}
    crashed = run(parse({**BASE, **relay, "faults": [{"at": "1s", "crash": "r2", "for": "300ms"}]}, "test"))
    assert crashed.metrics["servers"]["relay r2"]["copies_sent"] >= crashed.metrics["messages"]["delivered"] > 25


def test_of_the_jitter_of_several_lives_the_largest_is_told() -> None:
    lives = {"reordered": 2, "jitter_us": 900}, {"reordered": 1, "jitter_us": 300}
    assert add_counts(*lives) == {"reordered": 3, "jitter_us": 900}

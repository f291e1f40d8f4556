"""A subscription ends with the crash of its host, in both worlds: what is published then was not promised."""

from typing import Any

import pytest

from experiments.running.lives import until_crash
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

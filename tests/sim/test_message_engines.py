"""FJM2 in the simulator: the engines agree, with objects and with bytes, in random networks and faults."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from experiments.running.result import Result
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import ConfigError

PROTOCOLS = st.sampled_from(
    [
        {},
        {"repair": "immediate"},
        {"repair": "immediate-once", "robust": 2, "order": "fifo"},
        {"fec": 5, "parity": 4, "block": 8, "order": "fifo"},
        {"expire": "500ms", "pool": 10_000, "scheduling": "weighted"},
        {"pool": 9_000, "segment": 250},
        {"cache_max": 8, "cache_age": "300ms", "window": 16},
        {"queue": 2, "backoff": 0, "probing": "none"},
    ]
)
FAULTS = st.lists(
    st.sampled_from(
        [
            {"crash": "sender", "at": "700ms", "for": "300ms"},
            {"crash": "r1", "at": "600ms", "for": "400ms"},
            {"partition": [["sender"], ["r1", "r2", "r3"]], "at": "650ms", "for": "200ms"},
        ]
    ),
    max_size=2,
)


def _run(loss: str, settings_given: dict[str, Any], work: dict[str, Any], faults: list[Any], **more: str) -> Result:
    return run(
        parse(
            {
                "name": "engines",
                "topology": {
                    "kind": "star",
                    "receivers": 3,
                    "link": {"rate": "10Mbit", "delay": "2ms", "down": {"loss": loss}},
                },
                "protocol": {"name": "fjm2", "rate": "4Mbit", "grtt": "20ms", "segment": 500, **settings_given},
                "workload": [
                    {
                        "kind": "publish",
                        "hosts": ["sender"],
                        "to": "topic:t",
                        "at": "500ms",
                        "priority": {0: 1, 4: 2, 9: 1},
                        **work,
                    },
                    {"kind": "subscribe", "hosts": ["r1", "r2"], "to": "topic:t"},
                    {"kind": "subscribe", "hosts": ["r3"], "to": "topic:t", "selector": "JMSPriority > 3", "at": "600ms"},
                ],
                "faults": faults,
                "duration": "6s",
                **more,
            },
            "here",
        )
    )


@settings(deadline=None, max_examples=25, derandomize=True, phases=(Phase.generate,))
@given(
    st.sampled_from(["0%", "2%", "10%"]),
    PROTOCOLS,
    st.sampled_from(
        [
            {"size": 100, "count": 60, "rate": "saturated"},
            {"size": {100: 1, 3000: 3}, "count": 40, "rate": "saturated"},
            {"size": {100: 3, 3000: 1}, "count": 60, "rate": "200/s", "expires": "50ms"},
        ]
    ),
    FAULTS,
)
def test_engines_agree_on_messages(loss: str, protocol: dict[str, Any], work: dict[str, Any], faults: list[Any]) -> None:
    ways = ({"engine": "strict"}, {"engine": "fast"}, {"wire": "bytes"})
    strict, fast, wire = (_run(loss, protocol, work, faults, **way) for way in ways)
    assert strict.fingerprint == fast.fingerprint == wire.fingerprint
    assert strict.metrics["messages"] == fast.metrics["messages"] == wire.metrics["messages"]


def test_messages_that_come_in_bytes_are_those_that_were_published() -> None:
    found = _run("5%", {}, {"size": {0: 1, 700: 1, 5000: 1}, "count": 100, "rate": "saturated"}, [], wire="bytes")
    assert found.ok
    assert found.metrics["messages"]["missing"] == 0
    assert found.metrics["messages"]["delivered"] > 250


@pytest.mark.parametrize(
    ("place", "key", "value", "problem"),
    [
        (0, "to", "prices", "workload.0.to: 'prices' is not allowed; topic:NAME"),
        (0, "to", "queue:q", "workload.0.to: 'queue:q' is not allowed; there are topics only"),
        (1, "to", "topic:" + "x" * 256, "workload.1.to: 'topic:xxx"),
        (1, "selector", "price >", "workload.1.selector: the end is not allowed here"),
        (1, "selector", "'a' > 1", "workload.1.selector: a text can't be compared with a number"),
    ],
)
def test_what_a_message_can_not_be_is_refused_when_a_scenario_is_read(place: int, key: str, value: str, problem: str) -> None:
    work: list[dict[str, Any]] = [
        {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": 1, "count": 1, "rate": "saturated"},
        {"kind": "subscribe", "hosts": ["r1"], "to": "topic:t"},
    ]
    work[place][key] = value
    plain = {"name": "x", "topology": {"kind": "star", "receivers": 1}, "protocol": {"name": "fjm2"}, "workload": work}
    with pytest.raises(ConfigError, match=problem):
        parse({**plain, "duration": "1s"}, "here")

"""Packets that concern no machine of a sender's host are only counted, unless a slow application reads them there."""

from experiments.running.run import run
from experiments.scenario.scenario import parse


def fingerprint(engine: str) -> str | None:
    """Return the fingerprint of two senders in a LAN, of which one has a slow application from the middle on."""
    data = {
        "name": "slow-sender",
        "engine": engine,
        "topology": {"kind": "lan", "receivers": 4, "link": {"rate": "10Mbit", "delay": "1ms", "down": {"loss": "20%"}}},
        "protocol": {"name": "norm", "rate": "4Mbit", "grtt": "10ms", "block": 16, "parity": 0},
        "workload": [{"from": "r1", "size": 60_000}, {"from": "r2", "size": 120_000}],
        "faults": [{"at": 0.1, "slow": "r1", "takes": "10ms", "room": 64, "for": 0.5}],
        "duration": "4s",
    }
    return run(parse(data, "slow sender")).fingerprint


def test_content_of_others_delays_what_a_slow_sender_reads() -> None:
    found = fingerprint("fast")
    assert found is not None
    assert found == fingerprint("strict")


def test_content_of_others_takes_processor_time_of_a_sender() -> None:
    nodes = {"s1": {}, "a": {"cpu": "5ms"}, "b": {}, "r": {"count": 3}}
    links = [{"ends": ["s1", name], "rate": "10Mbit", "delay": "1ms", "down": {"loss": "10%"}} for name in ("a", "b", "r")]
    data = {
        "name": "busy sender",
        "topology": {"kind": "graph", "nodes": nodes, "links": links},
        "protocol": {"name": "norm", "rate": "2Mbit", "grtt": "10ms", "block": 16, "parity": 0},
        "workload": [{"from": "a", "size": 60_000}, {"from": "b", "size": 60_000}],
        "duration": "8s",
    }
    fast, strict = (run(parse(data | {"engine": engine}, "busy sender")) for engine in ("fast", "strict"))
    assert fast.metrics["nodes"] == strict.metrics["nodes"]
    assert fast.fingerprint == strict.fingerprint

"""For each rule of the doctor a scenario in which it bites, and what is measured of it in the simulator.

The scenario is as small as it can be. The advice of the rule changes it, and then the measured value is at least `ratio` times
smaller.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from experiments.running.result import Result
from experiments.running.simulate import simulate
from experiments.scenario.files import override
from experiments.scenario.scenario import parse

__all__ = ["CASES", "RuleCase"]


@dataclass(frozen=True, slots=True)
class RuleCase:
    """A scenario in which a rule bites, the value that shows it (0 is best), and how much smaller the advice makes it."""

    rule: str
    scenario: Mapping[str, Any]
    measure: Callable[[Result], float]
    ratio: float
    seeds: int = 1

    def data(self, changes: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the plain values of the scenario, with an advice applied."""
        data = deepcopy(dict(self.scenario))
        override(data, [f"{key}={value}" for key, value in (changes or {}).items()])
        return data

    def measured(self, data: Mapping[str, Any]) -> float:
        """Run the scenario with each seed and return the mean of what is measured."""
        return fmean(self.measure(simulate(parse({**data, "seed": seed + 1}, self.rule))) for seed in range(self.seeds))

    def holds(self, before: float, after: float) -> bool:
        """Return whether the advice does what it says."""
        return before > 0 and after * self.ratio <= before


def _scenario(topology: Mapping[str, Any], protocol: Mapping[str, Any], workload: Any, **more: Any) -> dict[str, Any]:
    whole = {"name": "case", "topology": topology, "protocol": protocol, "workload": workload, "duration": "60s"}
    return {**whole, **more}


def _file(size: str, **more: Any) -> dict[str, Any]:
    return {"kind": "file", "from": "sender", "size": size, **more}


def _star(receivers: int, trunk: Mapping[str, Any] | None = None, **link: Any) -> dict[str, Any]:
    return {"kind": "star", "receivers": receivers, "trunk": trunk or {"rate": "100Mbit"}, "link": {"rate": "100Mbit"} | link}


def _norm(**settings: Any) -> dict[str, Any]:
    return {"name": "norm", "rate": "10Mbit", **settings}


def _incomplete(result: Result) -> float:
    return sum(not row.equal for row in result.receivers)


def _aborted(result: Result) -> float:
    return sum(row.aborted for row in result.receivers)


def _last(result: Result) -> float:
    """Return when the last receiver is complete; the end of the run if one is not."""
    return max(float(result.metrics["duration"]) if row.completed_at is None else row.completed_at for row in result.receivers)


def _dropped(result: Result) -> float:
    return sum(int(row["dropped"]) for row in result.metrics["impairments"])


def _content(result: Result) -> float:
    return float(result.metrics["packets"]["data"])


def _feedback(result: Result) -> float:
    return float(sum(result.metrics["packets"].get(kind, 0) for kind in ("nack", "ack")))


def _loss(result: Result) -> float:
    return max(row.loss or 0.0 for row in result.receivers)


def _duplicates(result: Result) -> float:
    return float(result.metrics["storm"]["duplicates"])


def _blocked(result: Result) -> float:
    """Return for how many seconds publishers were blocked."""
    return float(result.metrics["messages"]["blocked"])


def _lossy(loss: str, delay: str = "5ms") -> dict[str, Any]:
    return {"rate": "100Mbit", "delay": delay, "down": {"loss": loss}}


WIDE = {"rate": "100Mbit", "delay": "20ms"}


def _publications(count: int) -> list[dict[str, Any]]:
    return [
        {"kind": "publish", "hosts": ["sender"], "to": "topic:a", "size": 1000, "rate": "200/s", "count": count},
        {"kind": "subscribe", "hosts": ["r"], "to": "topic:a"},
    ]


OUTAGE = [{"at": "50ms", "flap": ["sender", "s1"], "for": "2ms"}]

CASES = (
    RuleCase("rate-below-duration", _scenario(_star(2), _norm(rate="64kbit"), _file("1MB")), _incomplete, 1),
    RuleCase("rate-above-link", _scenario(_star(2, {"rate": "5Mbit", "queue": 50}), _norm(), _file("1MB")), _dropped, 100),
    RuleCase(
        "floor-above-link",
        _scenario(
            _star(2, {"rate": "5Mbit", "queue": 20, "delay": "10ms"}),
            _norm(congestion="norm", rate_min="10Mbit", grtt="50ms"),
            _file("3MB"),
        ),
        _dropped,
        5,
    ),
    RuleCase(
        "segment-above-mtu",
        _scenario(_star(4, delay="5ms", mtu=1500, down={"loss": "2%"}), _norm(grtt="30ms", segment=16000), _file("2MB")),
        _loss,
        3,
    ),
    RuleCase(
        "ttl-below-path",
        _scenario(
            {"kind": "wan", "sites": 2, "receivers": 2, "lan": {"rate": "100Mbit"}, "wan": {"rate": "10Mbit"}},
            _norm(),
            _file("100kB", ttl=1, members=["r1_1", "r2_1"]),
        ),
        _incomplete,
        1,
    ),
    RuleCase("loss-of-all", _scenario(_star(2, down={"loss": "100%"}), _norm(), _file("100kB")), _incomplete, 1),
    RuleCase(
        "feedback-of-none",
        _scenario(_star(2, down={"loss": "5%"}, up={"loss": "100%"}), _norm(), _file("100kB")),
        _incomplete,
        1,
    ),
    RuleCase("load-above-rate", _scenario(_star(2), _norm(rate="1Mbit"), _publications(200)), _blocked, 1),
    RuleCase("cache-below-load", _scenario(_star(2), _norm(), _publications(1000)), _blocked, 1),
    RuleCase(
        "grtt-above-path", _scenario(_star(4, delay="1ms", down={"loss": "1%"}), _norm(grtt="500ms"), _file("300kB")), _last, 3
    ),
    RuleCase(
        "grtt-below-path",
        _scenario(_star(20, _lossy("1%", "250ms")), _norm(grtt="5ms", grtt_max="10ms"), _file("1MB")),
        _feedback,
        1.5,
    ),
    RuleCase(
        "group-below-members",
        _scenario(_star(500, _lossy("2%"), delay="5ms"), _norm(grtt="30ms", gsize=1, backoff=2), _file("500kB")),
        lambda result: float(result.metrics["packets"].get("nack", 0)),
        1.5,
        3,
    ),
    RuleCase(
        "group-above-members",
        _scenario(_star(2, _lossy("0%", "40ms")), _norm(grtt="100ms", gsize=100_000_000), _file("100kB"), faults=OUTAGE),
        _last,
        1.1,
        10,
    ),
    RuleCase(
        "backoff-none",
        _scenario(_star(200, _lossy("2%"), delay="5ms"), _norm(grtt="30ms", backoff=0, gsize=200), _file("500kB")),
        _feedback,
        5,
    ),
    RuleCase(
        "robust-below-loss",
        _scenario(_star(20, delay="5ms", down={"loss": "30%"}), _norm(robust=1), _file("1kB")),
        _incomplete,
        20,
        20,
    ),
    RuleCase(
        "cache-stalls",
        _scenario(_star(4, **_lossy("2%", "20ms")), _norm(grtt="100ms", cache_max=8), _file("10kB", count=200)),
        _last,
        3,
    ),
    RuleCase(
        "flow-below-repair",
        _scenario(_star(4, **_lossy("2%", "20ms")), _norm(grtt="100ms", cache_max=8, flow=0.1), _file("10kB", count=100)),
        _aborted,
        1,
    ),
    RuleCase(
        "window-below-repair",
        _scenario(_star(4, **_lossy("5%", "20ms")), _norm(grtt="100ms", window=4), _file("10kB", count=100)),
        _aborted,
        1,
    ),
    RuleCase(
        "parity-below-loss", _scenario(_star(10, **_lossy("20%")), _norm(grtt="30ms", parity=2), _file("500kB")), _content, 1.3
    ),
    RuleCase("parity-none", _scenario(_star(50, **_lossy("5%")), _norm(grtt="30ms", parity=0), _file("500kB")), _content, 1.5),
    RuleCase("nacking-none", _scenario(_star(4, **_lossy("2%")), _norm(nacking="none"), _file("100kB")), _incomplete, 4),
    RuleCase(
        "silent-below-loss",
        _scenario(_star(4, **_lossy("2%")), _norm(feedback="none", auto_parity=2, robust=60), _file("200kB")),
        _incomplete,
        4,
        10,
    ),
    RuleCase(
        "unicast-feedback",
        _scenario(_star(300, _lossy("2%", "40ms")), _norm(feedback="unicast", grtt="90ms", gsize=300), _file("500kB")),
        _feedback,
        1.5,
    ),
    RuleCase(
        "timeout-below-path",
        _scenario(_star(4, **_lossy("0%", "100ms")), {"name": "a", "rate": "10Mbit", "timeout": "50ms"}, _file("100kB")),
        _content,
        1.5,
    ),
    RuleCase(
        "feedback-of-all", _scenario(_star(50, _lossy("2%")), {"name": "a", "rate": "10Mbit"}, _file("100kB")), _feedback, 10
    ),
    RuleCase(
        "window-below-path",
        _scenario(_star(50, _lossy("2%"), delay="10ms"), {"name": "n2", "rate": "10Mbit", "window": "1ms"}, _file("500kB")),
        _feedback,
        3,
    ),
    RuleCase(
        "distance-below-path",
        _scenario(
            _star(30, _lossy("2%", "200ms")),
            {"name": "srm", "rate": "10Mbit", "distance": "1ms", "timers": "fixed", "session_share": 0},
            _file("300kB"),
        ),
        _feedback,
        1.5,
    ),
)

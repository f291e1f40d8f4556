"""Whether an emulation kept up with real time."""

import pytest

from emu.health import Lateness, LinkStatistics, assess, kernel_drops, merge_reports

WELL = {"lateness": {"p50": 0.0001, "p99": 0.002, "max": 0.01}, "unread": 0.001, "overflow": 0, "refused": 0}


def test_quantiles_of_recorded_lateness() -> None:
    lateness = Lateness()
    for number in range(1000):
        lateness.record(number * 1e-5 + 1e-6)
    assert lateness.total == 1000
    assert lateness.quantile(0.5) == pytest.approx(0.005, abs=2e-5)
    assert lateness.quantile(0.99) == pytest.approx(0.0099, abs=2e-5)
    assert lateness.summary()["max"] == pytest.approx(0.009991)
    assert Lateness().summary() == {"p50": 0.0, "p99": 0.0, "max": 0.0}


def test_an_emulation_without_user_space_links_is_healthy_unless_packets_were_dropped() -> None:
    assert assess(LinkStatistics(), 0, 0) == {"healthy": True, "reasons": [], "receive_drops": 0, "kernel_drops": 0}
    health = assess(LinkStatistics(), 3, 5)
    assert not health["healthy"]
    assert [reason.split(" by ")[0] for reason in health["reasons"]] == ["packets dropped: 3", "packets dropped: 5"]


def test_kernel_drops_can_be_read() -> None:
    assert kernel_drops() >= 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, None),
        ({"overflow": 2}, "packets dropped: 2 by full queues of TAP devices"),
        ({"lateness": {"p50": 0.002, "p99": 0.002, "max": 1}}, "2.00 ms late at the median"),
        ({"lateness": {"p50": 0, "p99": 0.03, "max": 1}}, "30.0 ms at the 99th percentile"),
        ({"unread": 0.5}, "waited up to 0.50 s to be read"),
    ],
)
def test_an_emulation_that_did_not_keep_up_has_a_reason(changed: dict[str, object], words: str | None) -> None:
    health = assess(LinkStatistics(health={**WELL, **changed}), 0, 0)
    assert health["healthy"] is (words is None)
    assert len(health["reasons"]) == (words is not None)
    assert all(words in reason for reason in health["reasons"] if words is not None)


def test_merged_reports_add_packets_and_keep_the_largest_times() -> None:
    counts = dict.fromkeys(("offered", "dropped", "lost", "corrupt", "marked", "duplicated"), 1)

    def report(link: str, late: float, realtime: bool) -> dict[str, object]:
        direction = {"link": link, **counts, "first_lost": [9, 3], "first_queued": []}
        late_all = {"p50": late, "p99": late, "max": late}
        rest = {"released": 5, "lateness": late_all, "unread": late, "refused": 1, "realtime": realtime, "cpu": 0.5}
        return {"directions": [direction], **rest}

    found = merge_reports([report("a-b", 0.001, True), report("c-d", 0.004, False)], overflow=7)
    assert found.counts == {"a-b": counts, "c-d": counts}
    assert (found.dropped, found.queued) == ({"a-b": [3, 9], "c-d": [3, 9]}, {})
    assert found.health["lateness"] == {"p50": 0.004, "p99": 0.004, "max": 0.004}
    assert (found.health["released"], found.health["overflow"], found.health["cpu_s"]) == (10, 7, 1.0)
    assert found.health["realtime"] is False

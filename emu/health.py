"""Judge whether an emulation kept up with real time, from what the processes behind its links measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["LINE_COUNTERS", "LinkStatistics", "Lateness", "merge_reports", "assess", "kernel_drops"]

LINE_COUNTERS = ("offered", "dropped", "lost", "corrupt", "marked", "duplicated")
"""Names of the counters of a `topologies.line.Line`."""

_RESOLUTION = 1e-5

LATE_MEDIAN, LATE_P99, UNREAD = 0.001, 0.01, 0.1
"""Limits of a healthy emulation in seconds: median and 99th percentile of lateness, longest wait of a packet to be read."""


class Lateness:
    """Histogram of how late packets were released, in bins of 10 us."""

    __slots__ = ("counts", "maximum")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.maximum = 0.0

    def record(self, late: float) -> None:
        """Count a packet released `late` seconds after its time."""
        step = int(late / _RESOLUTION)
        counts = self.counts
        counts[step] = counts.get(step, 0) + 1
        if late > self.maximum:  # noqa: PLR1730 (half the cost of max, at every packet)
            self.maximum = late

    @property
    def total(self) -> int:
        """Number of packets released."""
        return sum(self.counts.values())

    def quantile(self, share: float) -> float:
        """Return the lateness in seconds that a `share` (0 to 1) of packets did not exceed, to 10 us; 0 without packets."""
        left = share * self.total
        for step in sorted(self.counts):
            left -= self.counts[step]
            if left <= 0:
                return min((step + 1) * _RESOLUTION, self.maximum)
        return 0.0

    def summary(self) -> dict[str, float]:
        """Return median, 99th percentile and maximum in seconds."""
        return {"p50": self.quantile(0.5), "p99": self.quantile(0.99), "max": self.maximum}


@dataclass(frozen=True, slots=True)
class LinkStatistics:
    """Counts of an emulation's user-space links, by link (`near-far`), and measurements of how well they kept up.

    `counts` are the counters of `topologies.line.Line`. `dropped` and `queued` are the identities of first transmissions, in
    ascending order, that the channel lost or damaged, and that the queue dropped. Times in `health` are those of the slowest
    process.
    """

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    dropped: dict[str, list[int]] = field(default_factory=dict)
    queued: dict[str, list[int]] = field(default_factory=dict)
    health: dict[str, Any] = field(default_factory=dict)


def merge_reports(reports: Sequence[Mapping[str, Any]], overflow: int) -> LinkStatistics:
    """Merge the reports of all link processes; `overflow` counts packets dropped because the TAP devices' queues were full."""
    directions = [direction for report in reports for direction in report["directions"]]
    counts = {direction["link"]: {name: direction[name] for name in LINE_COUNTERS} for direction in directions}
    dropped, queued = (
        {direction["link"]: sorted(direction[key]) for direction in directions if direction[key]}
        for key in ("first_lost", "first_queued")
    )
    lateness = {key: max(report["lateness"][key] for report in reports) for key in ("p50", "p99", "max")}
    health = {
        "released": sum(report["released"] for report in reports),
        "lateness": lateness,
        "unread": max(report["unread"] for report in reports),
        "overflow": overflow,
        "refused": sum(report["refused"] for report in reports),
        "realtime": all(report["realtime"] for report in reports),
        "cpu_s": sum(report["cpu"] for report in reports),
    }
    return LinkStatistics(counts, dropped, queued, health)


def _reasons(health: Mapping[str, Any]) -> list[str]:
    """Return why an emulation with this `health` is not healthy; empty if it is."""
    found = []
    if health["receive_drops"]:
        found.append(f"packets dropped: {health['receive_drops']} by full socket buffers of receivers")
    if health["kernel_drops"]:
        found.append(f"packets dropped: {health['kernel_drops']} by full backlog queues of the kernel")
    if "lateness" not in health:
        return found
    if health["overflow"]:
        found.append(f"packets dropped: {health['overflow']} by full queues of TAP devices: user-space links read too late")
    median, p99 = health["lateness"]["p50"], health["lateness"]["p99"]
    if median > LATE_MEDIAN or p99 > LATE_P99:
        found.append(f"user-space links {median * 1e3:.2f} ms late at the median, {p99 * 1e3:.1f} ms at the 99th percentile")
    if health["unread"] > UNREAD:
        found.append(f"a packet waited up to {health['unread']:.2f} s to be read by a user-space link")
    return found


def kernel_drops() -> int:
    """Return the packets this kernel has dropped from full backlog queues since boot (/proc/net/softnet_stat)."""
    return sum(int(line.split()[1], 16) for line in Path("/proc/net/softnet_stat").read_text().splitlines())


def assess(links: LinkStatistics, receive_drops: int, kernel_drops: int) -> dict[str, Any]:
    """Return the health of an emulation for its result: the measurements, `healthy`, and the `reasons` if it is not.

    `receive_drops` and `kernel_drops` count packets dropped by full sockets and by full backlog queues during the run.
    """
    health = {**links.health, "receive_drops": receive_drops, "kernel_drops": kernel_drops}
    reasons = _reasons(health)
    return {"healthy": not reasons, "reasons": reasons, **health}

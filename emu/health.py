"""Could the emulation keep up? What the processes behind its links measured of themselves, and a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["LINE_COUNTERS", "LinkStatistics", "Lateness", "merge_reports", "assess", "kernel_drops"]

LINE_COUNTERS = ("offered", "dropped", "lost", "corrupt", "marked", "duplicated")
"""What a `topologies.line.Line` counts."""

_RESOLUTION = 1e-5

LATE_MEDIAN, LATE_P99, UNREAD = 0.001, 0.01, 0.1
"""From which lateness on links in user space did not do what they were asked: of half the packets, of one in a hundred, and of
the one that waited longest to be read."""


class Lateness:
    """How late packets were released, as a histogram in steps of 10 us."""

    __slots__ = ("counts", "maximum")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.maximum = 0.0

    def record(self, median: float) -> None:
        """One packet was released so many seconds after its time."""
        step = int(median / _RESOLUTION)
        counts = self.counts
        counts[step] = counts.get(step, 0) + 1
        if median > self.maximum:  # noqa: PLR1730 (half the cost of max, at every packet)
            self.maximum = median

    @property
    def total(self) -> int:
        """Packets released."""
        return sum(self.counts.values())

    def quantile(self, share: float) -> float:
        """The lateness that this share of packets did not exceed, to 10 us; 0 without packets."""
        left = share * self.total
        for step in sorted(self.counts):
            left -= self.counts[step]
            if left <= 0:
                return min((step + 1) * _RESOLUTION, self.maximum)
        return 0.0

    def summary(self) -> dict[str, float]:
        """Median, 99th percentile and the largest."""
        return {"p50": self.quantile(0.5), "p99": self.quantile(0.99), "max": self.maximum}


@dataclass(frozen=True, slots=True)
class LinkStatistics:
    """What the links in user space of one emulation carried: counts by link, and how well they kept up.

    `counts` are those of `topologies.line.Line`. `dropped` and `queued` are identities of first transmissions, in ascending
    order: what the channel lost or damaged, and what the queue dropped. Of several processes, times are those of the worst.
    """

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    dropped: dict[str, list[int]] = field(default_factory=dict)
    queued: dict[str, list[int]] = field(default_factory=dict)
    health: dict[str, Any] = field(default_factory=dict)


def merge_reports(reports: Sequence[Mapping[str, Any]], overflow: int) -> LinkStatistics:
    """Put the reports of all processes together; `overflow` packets were dropped since nobody read them in time."""
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
    """Why links did not do what they were asked; empty for a healthy emulation. `health` is that of a result."""
    found = []
    if health["receive_drops"]:
        found.append(f"{health['receive_drops']} packets dropped by full sockets of receivers")
    if health["kernel_drops"]:
        found.append(f"{health['kernel_drops']} packets dropped by this machine's kernel between interfaces")
    if "lateness" not in health:
        return found
    if health["overflow"]:
        found.append(f"{health['overflow']} packets dropped in front of links in user space, which read them too late")
    median, p99 = health["lateness"]["p50"], health["lateness"]["p99"]
    if median > LATE_MEDIAN or p99 > LATE_P99:
        median, maximum = f"{median * 1e3:.2f} ms late at the median", f"{p99 * 1e3:.1f} ms at the 99th percentile"
        found.append(f"links in user space {median}, {maximum}")
    if health["unread"] > UNREAD:
        found.append(f"a packet waited up to {health['unread']:.2f} s to be read by a link in user space")
    return found


def kernel_drops() -> int:
    """Packets that this machine's kernel, since it was started, had no room for on their way between interfaces."""
    return sum(int(line.split()[1], 16) for line in Path("/proc/net/softnet_stat").read_text().splitlines())


def assess(merge_reports: LinkStatistics, receive_drops: int, kernel_drops: int) -> dict[str, Any]:
    """The health of an emulation for its result: what was measured, `healthy`, and the `reasons` if it is not."""
    health = {**merge_reports.health, "receive_drops": receive_drops, "kernel_drops": kernel_drops}
    reasons = _reasons(health)
    return {"healthy": not reasons, "reasons": reasons, **health}

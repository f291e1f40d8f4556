"""Counts of queues in the kernel: the processor or adapter of a router, the medium of a hub."""

import json

from emu.requirements import run

__all__ = ["QueueCounts", "count_queues"]

QueueCounts = tuple[int, int]
"""Packets offered, and packets dropped because the queue was full."""


def count_queues(device: str, pid: int | None, handle: str = "") -> QueueCounts:
    """Return the counts of the `pfifo` queues of a device, together; with a `handle` of that one only.

    All packets count, those of the kernel included (ARP, IGMP). `pid` is a process in the device's network namespace; None is
    this process's.
    """
    rows = json.loads(run(f"tc -s -j qdisc show dev {device}", pid=pid))
    queues = [row for row in rows if row["kind"] == "pfifo" and handle in ("", row["handle"])]
    dropped = sum(row["drops"] for row in queues)
    return sum(row["packets"] + row["qlen"] for row in queues) + dropped, dropped

"""Congestion control between this project's NORM and NRL's libnorm1: a lossy receiver limits the other one's sender.

Two receivers, one of this project and one of NRL's, are behind links with delay; one of the links loses packets. The sender
is of this project or NRL's. `make interop` runs all four cases, the suite those in which sender and lossy receiver differ.

    python -m tests.emu.congestion_interop [--write docs/norm.md]
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from emu.namespaces import run_isolated
from tests.emu.lab import NRL, Lab
from tests.emu.tables import write_table
from topologies.inline import Inline
from topologies.spec import Topology

__all__ = ["ALL", "DELAY", "LOSS", "Case", "Following", "following", "run_case"]

ADDRESS = "239.7.7.13"
OURS = [sys.executable, "-m", "benchmarks.norm_node"]
DELAY = 0.02
"""Seconds of each link, in each direction: a round trip takes four times as long."""
LOSS = 0.03
NODES = {"ours": 2, "nrl": 3}
MOST = 4e6
"""Highest rate in bits per second: several times what the loss allows."""


@dataclass(frozen=True, slots=True)
class Case:
    """Whose sender it is, and whose receiver loses packets."""

    sender: str
    lossy: str
    seconds: float = 16.0


ALL = [Case(sender, lossy) for sender in NODES for lossy in NODES]


def run_case(case: Case) -> dict[str, list[dict[str, Any]]]:
    """Run a session for some seconds; return what each program printed."""
    printed: dict[str, list[dict[str, Any]]] = run_isolated(partial(_run, case))
    return printed


def _network(lossy: str) -> Topology:
    """Return a network whose link to one of the receivers loses packets."""
    links: list[dict[str, Any]] = [{"ends": ["s1", host], "delay": DELAY} for host in ("sender", "r1", "r2")]
    for link in links:
        if lossy in link["ends"]:
            link["down"] = {"loss": LOSS}
    nodes: dict[str, Any] = {"sender": {}, "s1": {"kind": "switch"}, "r1": {}, "r2": {}}
    return Inline.model_validate({"kind": "graph", "nodes": nodes, "links": links}).build()


def _run(case: Case) -> dict[str, list[dict[str, Any]]]:
    lab = Lab(_network("r1" if case.lossy == "ours" else "r2"))

    def start(who: str, host: str, role: str, *more: str) -> Any:
        program = OURS if who == "ours" else NRL
        seconds = str(case.seconds + (1.0 if role == "recv" else 0.0))
        where = ["--addr", ADDRESS, "--port", "6003", "--iface", lab.device(host), "--timeout", seconds]
        return lab.start(host, [*program, role, *where, *more])

    ours = start("ours", "r1", "recv", "--node", str(NODES["ours"]), "--expect", "99", "--congestion", "norm")
    nrl = start("nrl", "r2", "recv", "--node", str(NODES["nrl"]), "--expect", "99")
    for host in ("r1", "r2"):
        lab.await_join(host, ADDRESS)
    what = ["--kind", "data", "--sizes", "20000000", "--parity", "0", "--grtt", "0.1", "--gsize", "10", "--backoff", "4"]
    control = ["--congestion", "norm"] if case.sender == "ours" else ["--cc"]
    sending = start(case.sender, "sender", "send", *what, *control, "--rate-max", str(MOST))
    return {"sender": lab.end(sending), "ours": lab.end(ours), "nrl": lab.end(nrl)}


@dataclass(frozen=True, slots=True)
class Following:
    """The rate of a sender compared with that of the receiver that lost packets, in the second half of a session.

    What came before that receiver first limited the rate is left out, up to the last two seconds: libnorm1's slow start lasts
    longer on a busy machine.
    """

    limiting: float
    """Share of the reports in which that receiver was the limiting one."""
    ratio: float
    """Median of the sending rate over the rate of that receiver."""
    rate: float
    """Median of the sending rate, bytes per second."""
    loss: float
    """Median of the loss event rates that the receiver reported; 0 without any report.

    Reports of libnorm1's receiver before its first loss event, which may be late on a busy machine, are left out.
    """

    @property
    def ok(self) -> bool:
        """Whether the sender sends at the rate of the receiver, which is less than the bound."""
        return self.limiting > 0.5 and 0.5 < self.ratio < 1.5 and self.rate < 0.9 * MOST / 8


def following(case: Case, printed: dict[str, list[dict[str, Any]]]) -> Following:
    """Return how the sender followed the receiver that lost packets."""
    rows = printed["sender"]
    until = rows[-1]["t"] - 1.5
    reports = [row for row in (rows if case.sender == "ours" else printed["ours"]) if row["event"] == "CONGESTION"]
    since = max(until - case.seconds / 2 + 1.5, min(_first_limited(case, reports), until - 2.0))
    states = [row for row in reports if since < row["t"] < until]
    if case.sender == "ours":
        limiting = mean(row["clr"] == NODES[case.lossy] for row in states)
        ratio = median(row["rate"] / row["clr_rate"] for row in states)
        losses = [row["clr_loss"] for row in states if row["clr"] == NODES[case.lossy] and row["clr_loss"]]
        return Following(limiting, ratio, median(row["rate"] for row in states), median(losses) if losses else 0.0)
    rates = [row["rate"] / 8 for row in rows if row["event"] == "TX_RATE_CHANGED" and since < row["t"] < until]
    rate = median(rates) if rates else MOST / 8
    if case.lossy == "nrl":
        # Which of its own receivers NRL's sender follows is seen from the rate alone: ours has lost nothing.
        return Following(mean(row["role"] != "CLR" for row in states), 1.0, rate, 0.0)
    limiting = mean(row["role"] == "CLR" for row in states)
    told = median(row["rate"] for row in states)
    return Following(limiting, rate / told, rate, median(row["loss"] for row in states))


def _first_limited(case: Case, reports: list[dict[str, Any]]) -> float:
    """Return when the receiver that loses packets first limited the rate; 0 where no report says so."""
    if case.sender == "ours":
        return next((row["t"] for row in reports if row["clr"] == NODES[case.lossy]), 0.0)
    return next((row["t"] for row in reports if row["role"] == "CLR"), 0.0) if case.lossy == "ours" else 0.0


def table(found: Mapping[Case, Following]) -> str:
    """Return the results of the cases as a table of Markdown."""
    names = {"ours": "ours", "nrl": "libnorm1's"}
    lines = [
        "| sender | receiver that loses 3 % | it limits the rate | rate [Mbit/s] | its rate followed |",
        "|---|---|---:|---:|---|",
    ]
    for case, each in found.items():
        rate = f"{8 * each.rate / 1e6:.2f}"
        verdict = "yes" if each.ok else "**no**"
        lines.append(f"| {names[case.sender]} | {names[case.lossy]} | {each.limiting:.0%} | {rate} | {verdict} |")
    return "\n".join(lines)


def main() -> int:
    """Run all cases, print the result of each, and return the exit code."""
    parser = argparse.ArgumentParser(description="Congestion control with NRL's NORM library.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into this page")
    options = parser.parse_args()
    found: dict[Case, Following] = {}
    for case in ALL:
        each = found[case] = following(case, run_case(case))
        print("ok    " if each.ok else "FAILED", case, each, file=sys.stderr, flush=True)
    write_table(table(found), "congestion", options.write)
    return 0 if all(each.ok for each in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

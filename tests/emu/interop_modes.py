"""Modes of sessions between this project and libnorm1: nacking, joining, descriptions, cancelled objects, restarts.

    python -m tests.emu.interop_modes [--write docs/norm.md]

Objects of 60 kB go from each implementation to the other over a link that loses in both directions. `make interop` writes the
table of all of them between the marks of a page.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from emu.namespaces import run_isolated
from emu.peers.nrl_norm import content
from tests.emu.lab import NRL, Lab
from tests.emu.tables import write_table
from topologies.generators import Star

__all__ = ["CASES", "SENDERS", "Case", "run_modes"]

ADDRESS, OURS = "239.7.7.14", [sys.executable, "-m", "tests.emu.mode_node"]
SIZE, LOSS = 60_000, 0.05
SENDERS = ("ours", "nrl")
MARK = "modes"
MOST_NACKS = 15
"""NACKs of a receiver of three objects that loses few packets."""
TIMING = {
    "ours": [],
    "nrl": [
        "--rate",
        "8e6",
        "--grtt",
        "0.01",
        "--grtt-max",
        "0.1",
        "--backoff",
        "2",
        "--gsize",
        "10",
        "--robust",
        "30",
        "--parity",
        "16",
    ],
}
PRESET = [str(SIZE), "1400", "64", "16"]


@dataclass(frozen=True, slots=True)
class Case:
    """A transfer of objects 0, 1, ...: `expected` are those that arrive, in any order.

    `ours` and `nrl` are the options of each implementation as (sender, receiver). The receiver begins `late` seconds after the
    sender. `restarts`: a second instance of the sender follows, with the options `again` of (ours, nrl) in place of the first
    one's. `nacks`: whether the receiver may request repairs. `squelched`: it also requests objects that never were, until a
    SQUELCH says that they can't be repaired.
    """

    name: str
    expected: tuple[int, ...] = (0, 1, 2)
    ours: tuple[str, str] = ("", "")
    nrl: tuple[str, str] = ("", "")
    late: float = 0.0
    restarts: bool = False
    again: tuple[str, str] | None = None
    nacks: bool = True
    squelched: bool = False


ALL_PARITY = ("--set auto_parity=16", "--auto-parity 16")
CASES = (
    Case("FTI only in INFO", ours=("--set fti=info", ""), nrl=("--fti info", "")),
    Case(
        "FTI preset",
        ours=("--set fti=preset preset_size=60000", "--set preset_size=60000"),
        nrl=("--fti preset", "--preset " + " ".join(PRESET)),
    ),
    Case(
        "late receiver of all objects",
        ours=("--stay 7 --set robust=300 rate=500kbit", "--set join=all"),
        nrl=("--stay 7 --robust 300", "--sync all"),
        late=1.5,
        squelched=True,
    ),
    Case("no nacking", ours=(ALL_PARITY[0], "--set nacking=none"), nrl=(ALL_PARITY[1], "--nacking none"), nacks=False),
    Case("nacking for information only", ours=(ALL_PARITY[0], "--set nacking=info"), nrl=(ALL_PARITY[1], "--nacking info")),
    Case("object as repair boundary", ours=("", "--set repair_boundary=object"), nrl=("", "--boundary object")),
    Case("object cancelled", (0, 2), ours=("--act cancel:1:0", ""), nrl=("--act cancel:1:0", "")),
    Case("object sent again", (0,), ours=("--act requeue:0:4.5", ""), nrl=("--act requeue:0:4.5", ""), late=1.5),
    Case("restart of the sender", (0, 1, 2, 0, 1, 2), restarts=True),
    Case(
        "restart with elements of another size",
        (0, 1, 2, 0, 1, 2),
        ours=("--set fec=2 fec_m=16 block=300 parity=30", ""),
        nrl=("--fec-id 2 --block 300 --parity 30", ""),
        restarts=True,
        again=("--set fec=2 fec_m=8 block=20 parity=5", "--fec-id 2 --block 20 --parity 5"),
    ),
)

Say: TypeAlias = Callable[[str, bool], None]
Trial: TypeAlias = tuple[Case, str]
"""A case, and who sends: "ours" or "nrl"."""


def run_modes(trials: Sequence[Trial], say: Say = lambda name, ok: None) -> list[dict[str, Any]]:
    """Run each trial; return what both programs reported, with "ok"."""
    found: list[dict[str, Any]] = run_isolated(partial(_transfers, trials))
    for (case, sender), reports in zip(trials, found, strict=True):
        say(f"{case.name}, sender {sender}", reports["ok"])
    return found


def _transfers(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    lab = Lab(Star.model_validate({"receivers": 1, "link": {"loss": LOSS}}).build())
    return [_transfer(lab, case, sender, port) for port, (case, sender) in enumerate(trials, 6003)]


def _transfer(lab: Lab, case: Case, sender: str, port: int) -> dict[str, Any]:
    def start(host: str, role: str, *more: str) -> Any:
        ours = (host == "sender") == (sender == "ours")
        program, options = (OURS, case.ours) if ours else (NRL, case.nrl)
        where = ["--addr", ADDRESS, "--port", str(port), "--iface", lab.device(host), "--timeout", "20"]
        own = options[role == "recv"]
        if role == "send" and "--instance=2" in more and case.again is not None:
            own = case.again[sender == "nrl"]
        return lab.start(host, [*program, role, *where, *more, *own.split()])

    def send(instance: int) -> Any:
        sizes = ["--sizes", *[str(SIZE)] * objects]
        return start("sender", "send", "--node", "7", f"--instance={instance}", *sizes, *TIMING[sender])

    objects = 1 if case.expected == (0,) else 3
    sending = send(1) if case.late else None
    time.sleep(case.late)
    receiver = start("r1", "recv", "--node", "3", "--expect", str(len(case.expected)))
    if sending is None:
        lab.await_join("r1", ADDRESS)
        sending = send(1)
    reports = {"sender": lab.end(sending)}
    if case.restarts:
        reports["again"] = lab.end(send(2))
    reports["receiver"] = lab.end(receiver)
    return {"ok": _is_right(case, reports), **reports}


def _is_right(case: Case, reports: dict[str, list[dict[str, Any]]]) -> bool:
    digests = [sha256(content("1", index, SIZE)).hexdigest() for index in case.expected]
    arrived = [row["sha256"] for row in reports["receiver"] if row["event"] == "RX_OBJECT_COMPLETED"]
    codes = [lines[-1]["code"] for lines in reports.values()]
    requests = [lines[-1].get("counts", {}) for lines in reports.values()]
    silent = not any(counts.get("nacks_sent", 0) or counts.get("nacks_received", 0) for counts in requests)
    squelches = [counts["squelches_sent"] for counts in requests if "squelches_sent" in counts]
    # NRL's sender does not tell how many it sent, but our receiver would request for ever without any.
    nacks = [counts["nacks_sent"] for counts in requests if "nacks_sent" in counts]
    is_told = not case.squelched or (all(squelches) if squelches else 0 < sum(nacks) < MOST_NACKS)
    return sorted(arrived) == sorted(digests) and not any(codes) and (case.nacks or silent) and is_told


def table(outcomes: dict[tuple[str, str], bool]) -> str:
    """Return the outcomes as a table of Markdown: a row for each case, a column for each direction."""
    lines = ["| | from us to libnorm1 | from libnorm1 to us |", "|---|---|---|"]
    for case in CASES:
        cells = ["yes" if outcomes[case.name, sender] else "**no**" for sender in SENDERS]
        lines.append(f"| {case.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Interoperation with NRL's NORM library: modes of sessions.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into this page")
    parser.add_argument("--case", help="run the cases whose name begins so, and print what the programs reported")
    options = parser.parse_args()
    trials = [(case, sender) for case in CASES for sender in SENDERS if case.name.startswith(options.case or "")]

    def say(name: str, ok: bool) -> None:
        print("ok    " if ok else "FAILED", name, file=sys.stderr, flush=True)

    reports = run_modes(trials, say)
    outcomes = {(case.name, sender): report["ok"] for (case, sender), report in zip(trials, reports, strict=True)}
    if options.case is not None:
        for report in reports:
            print(*report.items(), sep="\n", file=sys.stderr)
    else:
        write_table(table(outcomes), MARK, options.write)
    return 0 if all(outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

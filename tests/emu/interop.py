"""The interoperation of this project's NORM and NRL's libnorm1: what is sent, how it is coded, what is lost, who sends.

    python -m tests.emu.interop [--write docs/norm.md]

Each transfer goes to two receivers at once, one of this project and one of NRL's, in network namespaces whose links lose in
both directions. With all of them, 90 transfers, it writes the table between the marks of a page; `make interop` does.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from emu.namespaces import run_isolated
from emu.peers.nrl_norm import content
from tests.emu.lab import NRL, Lab
from topologies.generators import Star

__all__ = ["ALL", "CODES", "LOSSES", "Case", "Outcome", "run_cases"]

ADDRESS = "239.7.7.12"
OURS = [sys.executable, "-m", "benchmarks.norm_node"]
CODES = {
    "fec 5": (5, 64, 16),
    "fec 129": (129, 64, 16),
    "fec 2, m 8": (2, 64, 16),
    "fec 2, m 16": (2, 250, 60),
    "no parity": (5, 64, 0),
}
"""fec_id, source and parity symbols of a block; NRL's library has m 16 for blocks of more than 255 symbols."""
KINDS, LOSSES, SENDERS = ("data", "file", "stream"), (0.0, 0.05, 0.2), ("ours", "nrl")
SIZE = 400_000
MESSAGE = 1000
BEGIN, END = "<!-- interop -->", "<!-- /interop -->"


@dataclass(frozen=True, slots=True)
class Case:
    """One transfer of `SIZE` bytes; a stream consists of messages of `MESSAGE` bytes."""

    kind: str
    code: str
    loss: float
    sender: str
    flush: str = "none"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a transfer: whether each receiver got the content, and what the programs reported."""

    case: Case
    ours: bool
    nrl: bool
    ended: bool
    """Whether the sender was done."""
    reports: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether the transfer succeeded in all that this project has a part in."""
        return self.ended and self.ours and (self.nrl or self.case.sender == "nrl")


ALL = [Case(*choice) for choice in product(KINDS, CODES, LOSSES, SENDERS)]


def run_cases(cases: Iterable[Case], say: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """Run transfers one after the other, those of one loss in one network."""
    found: list[Outcome] = []
    by_loss: dict[float, list[Case]] = {}
    for case in cases:
        by_loss.setdefault(case.loss, []).append(case)
    for loss, some in by_loss.items():
        for case, reports in zip(some, run_isolated(partial(_transfers, loss, some)), strict=True):
            found.append(_outcome(case, reports))
            say(found[-1])
    return found


def _transfers(loss: float, cases: list[Case]) -> list[dict[str, Any]]:
    lab = Lab(Star.model_validate({"receivers": 2, "link": {"loss": loss}}).build())
    return [_transfer(lab, port, case) for port, case in enumerate(cases, 6003)]


def _transfer(lab: Lab, port: int, case: Case) -> dict[str, Any]:
    def start(who: str, host: str, role: str, *more: str) -> Any:
        program, device = OURS if who == "ours" else NRL, lab.device(host)
        where = ["--addr", ADDRESS, "--port", str(port), "--iface", device, "--timeout", "25"]
        return lab.start(host, [*program, role, *where, *more])

    tail = ["--tail", str(SIZE * 9 // 10)]
    ours = start("ours", "r1", "recv", "--node", "2", "--expect", "1")
    nrl = start("nrl", "r2", "recv", "--node", "3", "--expect", "1", "--linger", "0", *tail)
    for host in ("r1", "r2"):
        lab.await_join(host, ADDRESS)
    fec, block, parity = CODES[case.code]
    code = ["--fec-id", str(fec), "--block", str(block), "--parity", str(parity)]
    # A stream keeps all of its bytes for repairs.
    what = ["--kind", case.kind, "--sizes", str(SIZE), "--message", str(MESSAGE), "--flush", case.flush]
    timing = "--rate 50e6 --grtt 0.01 --grtt-max 0.1 --gsize 10 --backoff 2 --robust 40 --stream-buffer 2000000"
    sending = start(case.sender, "sender", "send", *what, *code, *timing.split())
    return {"sender": lab.end(sending), "ours": lab.end(ours), "nrl": lab.end(nrl)}


def _outcome(case: Case, reports: dict[str, Any]) -> Outcome:
    data = content("1", 0, SIZE)
    whole, tail = sha256(data).hexdigest(), sha256(data[-(SIZE * 9 // 10) :]).hexdigest()
    found = {who: [row for row in reports[who] if row["event"] == "RX_OBJECT_COMPLETED"] for who in SENDERS}
    ours = [row["sha256"] for row in found["ours"]] == [whole]
    # NRL's receiver begins a stream with the first segment that arrives, and without those lost before it.
    nrl = any(row["sha256"] == whole or (case.kind == "stream" and row.get("tail") == tail) for row in found["nrl"])
    return Outcome(case, ours, nrl, reports["sender"][-1]["code"] == 0, reports)


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a table of Markdown: a row for each kind and code, a column for each direction and loss."""
    columns = [(sender, loss) for sender in SENDERS for loss in LOSSES]
    names = [f"{'from us to libnorm1' if sender == 'ours' else 'from libnorm1 to us'}, {loss:.0%}" for sender, loss in columns]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(columns)]
    cells = {(each.case.kind, each.case.code, each.case.sender, each.case.loss): each.ok for each in outcomes}
    for kind, code in product(KINDS, CODES):
        row = ["yes" if cells[kind, code, sender, loss] else "**no**" for sender, loss in columns]
        lines.append(f"| {kind.upper()}, {code} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Interoperation with NRL's NORM library.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into this page")
    options = parser.parse_args()

    def say(outcome: Outcome) -> None:
        print(("ok    " if outcome.ok else "FAILED"), outcome.case, file=sys.stderr, flush=True)
        if not outcome.ok:
            print(outcome.reports, file=sys.stderr, flush=True)

    outcomes = run_cases(ALL, say)
    if options.write:
        before, _, rest = options.write.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        options.write.write_text(f"{before}{BEGIN}\n\n{table(outcomes)}\n\n{END}{after}")
    else:
        print(table(outcomes))
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

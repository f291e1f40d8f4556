"""The interoperation of this project's NORM and NRL's libnorm1: what is sent, how it is coded, what is lost, who sends.

    python -m tests.emu.interop [--write docs/norm.md]

Each transfer goes to two receivers at once, one of this project and one of NRL's, in network namespaces whose links lose in
both directions. With all of them it writes the table between the marks of a page; `make interop` does. Most send content with
each code; some use another part of the protocol, a `FEATURES`.
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

__all__ = ["ALL", "CODES", "FEATURES", "LOSSES", "Case", "Outcome", "run_cases"]

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
class Feature:
    """Options of the programs in addition to those of every transfer, and the expected reports, equal for both receivers."""

    sender: str = ""
    ours: str = ""
    """Options of this project's receiver."""
    nrl: str = ""
    """Options of NRL's."""
    acknowledged: tuple[int, ...] | None = None
    """Nodes that have to acknowledge; of two that are asked, the other one is missing."""
    answer: str = ""
    """The first bytes of the application data of their ACKs."""
    told: tuple[str, str] | None = None
    """Event of each receiver, and the beginning of its content."""


_STAY = "--linger 2"
FEATURES = {
    "unicast NACK": Feature(ours="--feedback unicast", nrl="--unicast-nack"),
    "watermark": Feature("--acker 2 --acker 3", _STAY, _STAY, acknowledged=(2, 3)),
    "watermark, unicast ACK": Feature(
        "--acker 2 --acker 3", f"{_STAY} --feedback unicast", f"{_STAY} --unicast-nack", acknowledged=(2, 3)
    ),
    "watermark, a node missing": Feature("--acker 2 --acker 9 --robust 80", _STAY, _STAY, acknowledged=(2,)),
    "watermark with content": Feature(
        "--acker 2 --acker 3 --ack-content ping",
        f"{_STAY} --ack-reply pong",
        f"{_STAY} --ack-reply pong",
        acknowledged=(2, 3),
        answer="pong",
        told=("RX_ACK_REQUEST", "ping"),
    ),
    "silent receivers": Feature("--parity 100 --auto-parity 100 --no-info", "--feedback none", "--silent"),
    "command": Feature("--command stop", _STAY, _STAY, told=("RX_CMD_NEW", "stop")),
}
"""Parts of the protocol beside the transfer of content. The receivers are node 2, this project's, and node 3."""


@dataclass(frozen=True, slots=True)
class Case:
    """One transfer of `SIZE` bytes; a stream consists of messages of `MESSAGE` bytes."""

    kind: str
    code: str
    loss: float
    sender: str
    flush: str = "none"
    feature: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a transfer: whether each receiver got the content, and what the programs reported."""

    case: Case
    ours: bool
    nrl: bool
    ended: bool
    """Whether the sender was done."""
    reports: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether the transfer succeeded in all that this project has a part in."""
        content = self.ended and self.ours and (self.nrl or self.case.sender == "nrl")
        return content and (not self.case.feature or _has_worked(FEATURES[self.case.feature], self.case.sender, self.reports))


def _has_worked(feature: Feature, sender: str, reports: dict[str, Any]) -> bool:
    """Return whether the programs report what a feature is to bring about, at NRL's receiver if this project sends."""
    if feature.acknowledged is not None:
        (row,) = [row for row in reports["sender"] if row["event"] == "ACKS_COMPLETED"]
        missing = [node for node in (2, 3, 9) if f"--acker {node}" in feature.sender and node not in feature.acknowledged]
        if (row["acknowledged"], row["missing"]) != ([*feature.acknowledged], missing):
            return False
        if feature.answer and not all(row["contents"][str(node)].startswith(feature.answer) for node in feature.acknowledged):
            return False
    if feature.told is None:
        return True
    event, content = feature.told
    told = {who: [row["content"] or "" for row in reports[who] if row["event"] == event] for who in SENDERS}
    # NRL's receiver tells of each copy of a command.
    is_told_ours = any(each.startswith(content) for each in told["ours"]) and (event != "RX_CMD_NEW" or len(told["ours"]) == 1)
    return is_told_ours and (sender == "nrl" or any(each.startswith(content) for each in told["nrl"]))


UNICAST = "unicast NACK"
ALL = [Case(*choice, feature=feature) for feature in ("", UNICAST) for choice in product(KINDS, CODES, LOSSES, SENDERS)]
ALL += [
    Case(kind, "fec 5", loss, sender, feature=feature)
    for feature in FEATURES
    if feature != UNICAST
    for kind in (("data", "stream") if feature == "watermark" else ("data",))
    for loss in LOSSES
    for sender in SENDERS
]


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
    feature = FEATURES.get(case.feature, Feature())
    ours = start("ours", "r1", "recv", "--node", "2", "--expect", "1", *feature.ours.split())
    nrl = start("nrl", "r2", "recv", "--node", "3", "--expect", "1", "--linger", "0", *tail, *feature.nrl.split())
    for host in ("r1", "r2"):
        lab.await_join(host, ADDRESS)
    fec, block, parity = CODES[case.code]
    code = ["--fec-id", str(fec), "--block", str(block), "--parity", str(parity)]
    # A stream keeps all of its bytes for repairs.
    what = ["--kind", case.kind, "--sizes", str(SIZE), "--message", str(MESSAGE), "--flush", case.flush]
    timing = "--rate 50e6 --grtt 0.01 --grtt-max 0.1 --gsize 10 --backoff 2 --robust 40 --stream-buffer 2000000"
    sending = start(case.sender, "sender", "send", *what, *code, *timing.split(), *feature.sender.split())
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
    cells = {(_label(each.case), each.case.sender, each.case.loss): each.ok for each in outcomes}
    for label in dict.fromkeys(_label(each.case) for each in outcomes):
        row = ["yes" if cells[label, sender, loss] else "**no**" for sender, loss in columns]
        lines.append(f"| {label} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def _label(case: Case) -> str:
    code = case.code if case.feature in ("", UNICAST) else ""
    return ", ".join(part for part in (case.kind.upper(), code, case.feature) if part)


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

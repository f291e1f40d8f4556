"""Where sessions take place, between this project and libnorm1: IPv6, source-specific groups, sessions of two hosts.

    python -m tests.emu.interop_places [--write docs/norm.md]

Each transfer of a file is by the commands `send` and `recv` of this project on one side, over a link that loses in both
directions. `make interop` writes the table of all of them between the marks of a page.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from emu.namespaces import run_isolated
from emu.peers.nrl_norm import content
from tests.emu.ipv6 import give_ipv6
from tests.emu.lab import MCASTLAB, NRL, Lab
from tests.emu.tables import write_table
from topologies.generators import Star

__all__ = ["PLACES", "Place", "run_places"]

Say: TypeAlias = Callable[[str, bool], None]
SIZE, LOSS = 400_000, 0.05
SENDERS = ("ours", "nrl")
MARK = "places"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session takes place: `to` is what the sender names, `at` what the receiver does; more options of each program."""

    name: str
    to: str
    at: str
    ours: tuple[str, ...] = ()
    nrl: tuple[str, ...] = ()

    @property
    def is_group(self) -> bool:
        """Whether it is with a group, and not with one host."""
        return self.to == self.at


Case: TypeAlias = tuple[Place, str]
"""A place, and who sends: "ours" or "nrl"."""
PLACES = (
    Place("IPv6, site-local group", "ff05::1:2:3", "ff05::1:2:3"),
    Place("IPv6, link-local group", "ff02::1:2:3", "ff02::1:2:3"),
    Place("source-specific group", "232.7.7.7", "232.7.7.7", ("--source", "10.0.0.1"), ("--ssm", "10.0.0.1", "--unicast-nack")),
    Place("source-specific group, IPv6", "ff35::8000:7", "ff35::8000:7", ("--source", "fd00::1"), ("--unicast-nack",)),
    Place("two hosts", "10.0.0.2", "10.0.0.1", (), ("--unicast-nack",)),
    Place("two hosts, IPv6", "fd00::2", "fd00::1", (), ("--unicast-nack",)),
)
"""The address of the sender ends in 1, that of the receiver in 2. libnorm1 joins IPv6 groups for all sources only."""


def run_places(cases: Sequence[Case], say: Say = lambda name, ok: None) -> list[dict[str, Any]]:
    """Transfer a file for each place and each sender ("ours" or "nrl"); return what both programs reported."""
    found: list[dict[str, Any]] = run_isolated(partial(_transfers, cases))
    for (place, sender), reports in zip(cases, found, strict=True):
        say(f"{place.name}, sender {sender}", reports["ok"])
    return found


def _transfers(cases: Sequence[Case]) -> list[dict[str, Any]]:
    lab = Lab(Star.model_validate({"receivers": 1, "link": {"loss": LOSS}}).build())
    give_ipv6(lab, ["sender", "r1"], LOSS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "object-0")
        file.write_bytes(content("1", 0, SIZE))
        return [_transfer(lab, place, sender, port, file) for port, (place, sender) in enumerate(cases, 6003)]


def _transfer(lab: Lab, place: Place, sender: str, port: int, file: Path) -> dict[str, Any]:
    into = file.parent / str(port)
    if sender == "ours":
        receiving = [*_nrl("recv", lab, place.at, port), *place.nrl, "--expect", "1", "--linger", "0"]
        sending = [*_ours("send", lab, place.to, port), str(file), "--rate", "50Mbit", "--grtt", "10ms", "--robust", "40"]
    else:
        receiving = [*_ours("recv", lab, place.at, port), *place.ours, "--dir", str(into), "--count", "1"]
        sending = [
            *_nrl("send", lab, place.to, port),
            "--kind",
            "file",
            "--sizes",
            str(SIZE),
            "--rate",
            "50e6",
            "--grtt",
            "0.01",
        ]
        # Long enough for a NACK that waits a second for neighbour discovery, because the link lost a packet of that.
        sending += ["--robust", "120", "--gsize", "10"]
    receiver = lab.start("r1", receiving)
    lab.await_port("r1", port)
    if place.is_group:
        lab.await_join("r1", place.to)
    reports = {"sender": lab.end(lab.start("sender", sending)), "receiver": lab.end(receiver)}
    codes = {who: lines[-1]["code"] for who, lines in reports.items()}
    if sender == "ours":
        (arrived,) = [row["sha256"] for row in reports["receiver"] if row["event"] == "RX_OBJECT_COMPLETED"] or [None]
    else:
        (arrived,) = [row["sha256"] for row in reports["receiver"][-1]["files"]] or [None]
    expected = sha256(content("1", 0, SIZE)).hexdigest()
    return {"ok": codes == {"sender": 0, "receiver": 0} and arrived == expected, **reports}


def _ours(role: str, lab: Lab, address: str, port: int) -> list[str]:
    where = f"[{address}]" if ":" in address else address
    device = lab.device("sender" if role == "send" else "r1")
    return [*MCASTLAB, role, "--group", f"{where}:{port}", "--iface", device, "--timeout", "20", "--json"]


def _nrl(role: str, lab: Lab, address: str, port: int) -> list[str]:
    device, node = (lab.device("sender"), "2") if role == "send" else (lab.device("r1"), "3")
    return [*NRL, role, "--addr", address, "--port", str(port), "--iface", device, "--node", node, "--timeout", "20"]


def table(outcomes: dict[tuple[str, str], bool]) -> str:
    """Return the outcomes as a table of Markdown: a row for each place, a column for each direction."""
    lines = ["| | from us to libnorm1 | from libnorm1 to us |", "|---|---|---|"]
    for place in PLACES:
        cells = ["yes" if outcomes[place.name, sender] else "**no**" for sender in SENDERS]
        lines.append(f"| {place.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Interoperation with NRL's NORM library: where sessions take place.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into this page")
    options = parser.parse_args()
    cases = [(place, sender) for place in PLACES for sender in SENDERS]

    def say(name: str, ok: bool) -> None:
        print("ok    " if ok else "FAILED", name, file=sys.stderr, flush=True)

    reports = run_places(cases, say)
    write_table(
        table({(place.name, sender): report["ok"] for (place, sender), report in zip(cases, reports, strict=True)}),
        MARK,
        options.write,
    )
    return 0 if all(report["ok"] for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())

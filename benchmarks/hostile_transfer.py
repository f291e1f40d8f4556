"""Run an honest transfer beside each attack, in network namespaces, and measure what the attack leaves of it.

    python -m benchmarks.hostile_transfer [KIND ...] [--json] [--size 10MB] [--rate 40Mbit] [--loss 0%]
        [--attackers 1] [--write PAGE]

`mcastlab recv`, `mcastlab send` and attackers (`benchmarks.attacks`) run on hosts of one switch. The flood begins
before the honest sender starts and ends after the file is stored; attacks that name the honest sender begin when it is heard.
A row has the goodput from the honest sender's first packet to the complete file, compared with that of undisturbed transfers,
and, of both programs, CPU seconds, the highest resident memory and the most open descriptors. Attacks of which
`benchmarks.attacks` says why they can't be resisted have no limit; for others the exit code is 1 when less than half of the
goodput is left. `--write` renews the table of a Markdown page.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.attacks import KINDS
from emu.namespaces import run_isolated
from emu.requirements import check_tools
from protocols.errors import UnsupportedError
from tests.emu.lab import MCASTLAB, Lab
from topologies.generators import Star
from topologies.units import format_rate, parse_fraction, parse_rate, parse_size

__all__ = ["LEAST", "MARKS", "Honest", "Outcome", "Transfer", "honest_transfer", "main", "table", "transfers", "write"]

GROUP = "239.7.7.7:6003"
SENDER = 1
LEAST = 0.5
"""Share of the undisturbed goodput that an attack must leave."""
REPEATED = 3
"""Transfers beside an attack that seems to leave less: the median counts, since other load of a machine disturbs them, too."""
PERIOD = 0.01
"""Seconds between two looks at the processes."""
LEAD = 0.3
"""Seconds for which a flood runs before the honest sender is started."""
MARKS = "<!-- table of benchmarks.hostile_transfer -->", "<!-- end of the table -->"


@dataclass(frozen=True, slots=True)
class Honest:
    """The honest transfer: bytes, bytes per second, loss on the links of receivers, options of `mcastlab send`."""

    size: int = 10_000_000
    rate: float = 5e6
    loss: float = 0.0
    options: tuple[str, ...] = ()
    both: tuple[str, ...] = ()
    """Options of `send` and `recv`."""
    timeout: float = 15.0
    attackers: int = 1
    """Hosts that attack, each at the full rate."""

    @property
    def network(self) -> Star:
        """The network: the sender, a receiver `r1`, and the attackers from `r2` on."""
        return Star.model_validate({"receivers": 1 + self.attackers, "link": {"loss": self.loss}})


@dataclass(slots=True)
class Outcome:
    """Measurements of one transfer beside an attack."""

    kind: str
    packets: float
    """Packets per second of the attack."""
    is_complete: bool = False
    goodput: float = 0.0
    """Bytes per second; 0 when the file is not complete."""
    share: float = 0.0
    """Of the undisturbed goodput."""
    memory: int = 0
    """Bytes of resident memory, the maximum of both programs."""
    descriptors: int = 0
    """Open descriptors, the maximum of both programs."""
    cpu: tuple[float, float] = (0.0, 0.0)
    """CPU seconds of `send` and of `recv`."""
    stopped: float = 0.0
    """Seconds from SIGINT until `recv` had ended."""


class Watched:
    """A running program, with the maximum of its resident memory and of its open descriptors so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.memory = self.descriptors = 0
        self.cpu = 0.0

    def look(self) -> None:
        """Update what is known of the program, unless it has ended."""
        folder = Path("/proc", str(self.process.pid))
        try:
            status = (folder / "status").read_text()
            ticks = (folder / "stat").read_text().rpartition(")")[2].split()
            self.descriptors = max(self.descriptors, len(list((folder / "fd").iterdir())))
        except OSError:
            return
        if found := re.search(r"^VmHWM:\s+(\d+) kB", status, re.M):
            self.memory = max(self.memory, int(found[1]) * 1024)
        self.cpu = (int(ticks[11]) + int(ticks[12])) / 100

    def interrupt(self) -> float:
        """Send SIGINT and wait for the end; return the seconds it took."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return time.monotonic() - begin


class Transfer:
    """One transfer in a lab, beside an attack (None: undisturbed)."""

    def __init__(self, lab: Lab, honest: Honest, folder: Path, kind: str | None, rate: float | None) -> None:
        self.lab, self.honest, self.folder, self.kind = lab, honest, folder, kind
        self.rate = (rate or KINDS[kind].rate) if kind is not None else 0.0
        self.content = Random(7).randbytes(honest.size)
        self.log = folder / "recv.log"

    def run(self) -> Outcome:
        """Run it."""
        outcome = Outcome(self.kind or "undisturbed", self.rate)
        source, into = self.folder / "photo.bin", self.folder / "into"
        source.write_bytes(self.content)
        receiving = Watched(self._start("r1", [*MCASTLAB, "recv", "--group", GROUP, "--dir", str(into), "--json"]))
        self.lab.await_join("r1", GROUP.partition(":")[0])
        attacking = []
        if self.kind is not None:
            attacking = [self._start_flood(f"r{number}") for number in range(2, 2 + self.honest.attackers)]
            time.sleep(LEAD)
        rate = ["--rate", format_rate(self.honest.rate), "--grtt", "10ms", "--node", str(SENDER)]
        command = [*MCASTLAB, "send", str(source), "--group", GROUP, "--json", *rate, *self.honest.options]
        sending = Watched(self._start("sender", command))
        seconds = self._await(receiving, sending)
        outcome.stopped = receiving.interrupt()
        sending.interrupt()
        outcome.packets = sum([self._end_flood(attack) for attack in attacking])
        digest = sha256(self.content).hexdigest()
        outcome.is_complete = seconds > 0 and any(_digest(path) == digest for path in into.glob("photo.bin*"))
        outcome.goodput = self.honest.size / seconds if outcome.is_complete else 0.0
        outcome.memory = max(receiving.memory, sending.memory)
        outcome.descriptors = max(receiving.descriptors, sending.descriptors)
        outcome.cpu = sending.cpu, receiving.cpu
        return outcome

    def _start(self, host: str, command: list[str]) -> "subprocess.Popen[str]":
        """Start one of the honest programs; its output goes to a file, which never makes it wait."""
        full = ["mnexec", "-a", str(self.lab.network.pid(host)), *command, *self.honest.both]
        with open(self.log if host == "r1" else self.folder / "send.log", "w") as log:
            return subprocess.Popen(full, stdout=log, stderr=log, text=True)

    def _start_flood(self, host: str) -> "subprocess.Popen[str]":
        """Start the attack on a host."""
        flood = [sys.executable, "-m", "benchmarks.attacks", str(self.kind), "--group", GROUP, "--iface", self.lab.device(host)]
        return self.lab.start(host, [*flood, "--seconds", str(2 * self.honest.timeout), "--rate", str(self.rate)])

    def _end_flood(self, attack: "subprocess.Popen[str]") -> float:
        """End the attack; return the packets it sent per second."""
        attack.send_signal(signal.SIGINT)
        try:
            output, _ = attack.communicate(timeout=10)
            said = json.loads(output)
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            attack.kill()
            attack.wait()
            return 0.0
        return float(said["packets"] / said["seconds"])

    def _await(self, *programs: Watched) -> float:
        """Wait until the file is complete; return the seconds since the honest sender's first packet, 0 without success."""
        end = time.monotonic() + self.honest.timeout
        begun = done = 0.0
        before = self._sent()
        with open(self.log) as log:
            partial = ""
            while not done and time.monotonic() < end and programs[0].process.poll() is None:
                for program in programs:
                    program.look()
                partial += log.read()
                *lines, partial = partial.split("\n")
                if not begun and self._sent() > before:
                    begun = time.monotonic()
                if any(event["event"] == "object_received" for event in _events(lines)):
                    done = time.monotonic()
                time.sleep(PERIOD)
        return done - begun if done else 0.0

    def _sent(self) -> int:
        """Return the UDP packets that the sender's host has sent."""
        text = Path(f"/proc/{self.lab.network.pid('sender')}/net/snmp").read_text()
        names, values = (line.split() for line in text.splitlines() if line.startswith("Udp: "))
        return int(values[names.index("OutDatagrams")])


def _events(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Return the events about the honest sender."""
    for line in lines:
        if f'"sender": {SENDER},' in line or f'"sender": {SENDER}}}' in line:
            yield json.loads(line)


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def honest_transfer(lab: Lab, honest: Honest, kind: str | None, rate: float | None = None) -> Outcome:
    """Run one transfer in the hosts of `lab`, beside an attack of `rate` packets per second (None: that of the attack)."""
    with tempfile.TemporaryDirectory() as folder:
        return Transfer(lab, honest, Path(folder), kind, rate).run()


def transfers(honest: Honest, kinds: Iterable[str], rate: float | None = None, undisturbed: int = 3) -> list[Outcome]:
    """Run a transfer without attack some times, for comparison, and one beside each attack."""

    def work() -> list[dict[str, Any]]:
        lab = Lab(honest.network.build())
        plain = sorted((honest_transfer(lab, honest, None) for _ in range(undisturbed)), key=lambda run: run.goodput)
        base = plain[len(plain) // 2]
        _say(base, base)
        outcomes = [base]
        for kind in kinds:
            runs = [honest_transfer(lab, honest, kind, rate)]
            _say(runs[0], base)
            while runs[0].share < LEAST and not KINDS[kind].hopeless and len(runs) < REPEATED:
                runs.append(honest_transfer(lab, honest, kind, rate))
                _say(runs[-1], base)
            outcomes.append(sorted(runs, key=lambda run: run.goodput)[len(runs) // 2])
        return [asdict(outcome) for outcome in outcomes]

    return [Outcome(**{**row, "cpu": tuple(row["cpu"])}) for row in run_isolated(work)]


def _say(outcome: Outcome, base: Outcome) -> None:
    outcome.share = round(outcome.goodput / base.goodput, 3) if base.goodput else 0.0
    print(
        f"{outcome.kind:36} {outcome.packets:7.0f}/s {outcome.goodput * 8e-6:6.1f} Mbit/s {100 * outcome.share:4.0f} %"
        f"  {outcome.memory / 1e6:5.0f} MB  {outcome.descriptors:4} descriptors"
        f"  CPU {outcome.cpu[0]:.1f} + {outcome.cpu[1]:.1f} s, stop {outcome.stopped:.2f} s",
        file=sys.stderr,
        flush=True,
    )


# -- the table ---------------------------------------------------------------------------------------------------------


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a table in Markdown."""
    lines = ["| attack | packets/s | goodput | of undisturbed | memory | descriptors |", "|---|---:|---:|---:|---:|---:|"]
    for each in outcomes:
        goodput = f"{each.goodput * 8e-6:.1f} Mbit/s" if each.is_complete else "not complete"
        share = f"{100 * each.share:.0f} %"
        rest = f"{each.memory / 1e6:.0f} MB | {each.descriptors}"
        lines.append(f"| {each.kind} | {each.packets:,.0f} | {goodput} | {share} | {rest} |")
    return "\n".join(lines)


def write(page: Path, text: str) -> None:
    """Put a table between the marks of a page."""
    before, _, rest = page.read_text().partition(MARKS[0])
    page.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Run an honest transfer beside each attack.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="attacks; all of benchmarks.attacks if none is named")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--size", type=parse_size, default=10_000_000)
    parser.add_argument("--rate", type=parse_rate, default=5e6)
    parser.add_argument("--loss", type=parse_fraction, default=0.0)
    parser.add_argument("--packets", type=float, help="packets per second of every attack")
    parser.add_argument("--attackers", type=int, default=1, help="hosts that attack, each at this rate")
    parser.add_argument("--send", default="", help="further options of send, separated by spaces")
    parser.add_argument("--both", default="", help="further options of send and recv, separated by spaces")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a Markdown page with the marks of the table")
    options = parser.parse_args()
    if unknown := [kind for kind in options.kinds if kind not in KINDS]:
        parser.error(f"{unknown[0]!r} is none of: {', '.join(KINDS)}")
    try:
        check_tools()
    except UnsupportedError as error:
        print(error, file=sys.stderr)
        return 3
    send, both = tuple(options.send.split()), tuple(options.both.split())
    honest = Honest(options.size, options.rate, options.loss, send, both, attackers=options.attackers)
    outcomes = transfers(honest, options.kinds or list(KINDS), options.packets)
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes]))
    if options.write is not None:
        write(options.write, table(outcomes))
    resisted = [each for each in outcomes if each.kind in KINDS and not KINDS[each.kind].hopeless]
    return int(any(each.share < LEAST for each in resisted))


if __name__ == "__main__":
    sys.exit(main())

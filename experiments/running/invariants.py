"""Check the invariants of a run, which hold under any loss and any fault, and record violations.

The rules: `once` (an object is received or aborted once), `intact` (received content equals what was sent), `order` (objects of
a sender are received in order, if the protocol guarantees it), `sent` (only sent objects are received), `memory` (no machine
exceeds its limits, see `Machine.held`), `quiescence` (after the end nothing more is sent).

For messages, as far as the protocol guarantees it (`protocols.messaging.Guarantees`): `matches` (only messages that were
published are delivered, in subscriptions they match), `promised` (no accepted message is skipped silently), `told` (what is
missing is told before nothing is sent any more), `once` (none is delivered twice), `fifo` (those of one publisher come in
order), and in any case `intact` (they are what was published).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from experiments.running.content import digest_of
from experiments.running.machine_state import exceeded
from experiments.workload.ledger import Ledger
from protocols.events import ObjectReceived
from protocols.machine import Content, Machine, Source

__all__ = ["RULES", "Invariants", "Violation", "check_messages"]

RULES = ("once", "intact", "order", "sent", "memory", "quiescence")
MESSAGE_RULES = ("matches", "promised", "fifo")
KEPT = 100
"""Violations that are recorded; further ones are only counted, to bound memory."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule: time in seconds, host (empty: the network as a whole), rule, and description."""

    at: float
    host: str
    rule: str
    what: str


def _message_rules(ledger: Ledger) -> list[str]:
    """Return the rules of messages that are checked in a run."""
    return [rule for rule in MESSAGE_RULES if rule == "matches" or getattr(ledger.guarantees, rule)]


def check_messages(ledger: Ledger) -> dict[str, Any]:
    """Return plain values as `Invariants.plain`, of a run in which only the messages are checked."""
    checked = [*(["once"] if ledger.guarantees.once else []), "intact", *_message_rules(ledger)]
    violations = [asdict(Violation(*broken)) for broken in ledger.broken[:KEPT]]
    return {"checked": checked, "broken": len(ledger.broken), "violations": violations}


class Invariants:
    """Check one run. `ordered`: whether the protocol guarantees that objects are received in order."""

    def __init__(self, ordered: bool = False) -> None:
        self._ordered = ordered
        self._sent: dict[tuple[int, int], dict[tuple[int, bytes], Source]] = {}
        self._known: dict[tuple[int, int], list[tuple[int, str]]] = {}
        self._aborted: dict[str, set[tuple[int, int]]] = {}
        self._latest: dict[tuple[str, int], int] = {}
        self._rules: list[str] = []
        self.violations: list[Violation] = []
        self.count = 0

    # Reports of programs

    def submitted(self, node: int, object_id: int, content: Content) -> None:
        """Record an object submitted to the sender with this node id."""
        # A restarted sender numbers its objects from 0 again, so an id may name several contents.
        self._sent.setdefault((node, object_id), {})[content.source.size, content.info] = content.source

    def received(self, host: str, event: ObjectReceived, again: bool, now: float) -> None:
        """Check a received object; `again`: whether the application had received it before."""
        key = (event.sender, event.object_id)
        what = f"object {event.object_id} of sender {event.sender}"
        if again:
            self._broken(now, host, "once", f"{what} came twice")
        elif self._aborted and key in self._aborted.get(host, ()):
            self._broken(now, host, "once", f"{what} came after it was given up")
        known = self._sent.get(key)
        if known is None:
            self._broken(now, host, "sent", f"{what} was never sent")
        elif (event.size, event.info) not in known:
            self._broken(now, host, "intact", f"{what} has {event.size} bytes and the information {event.info!r}")
        if self._ordered:
            latest = self._latest.get((host, event.sender), -1)
            if event.object_id < latest:
                self._broken(now, host, "order", f"{what} came after object {latest}")
            self._latest[host, event.sender] = max(latest, event.object_id)

    def aborted(self, host: str, key: tuple[int, int], had: bool, now: float) -> None:
        """Check an aborted object; `had`: whether the application had received it."""
        gone = self._aborted.setdefault(host, set())
        if had or key in gone:
            self._broken(now, host, "once", f"object {key[1]} of sender {key[0]} ended before it was given up")
        gone.add(key)

    def forget(self, host: str, sender: int | None = None) -> None:
        """Forget what a host received from a sender, or from all (None).

        It may come again after a crash, a restart of the sender, or when the host has forgotten the sender.
        """
        if host in self._aborted:
            self._aborted[host] = {key for key in self._aborted[host] if sender not in (None, key[0])}
        known = [each for each in self._latest if each[0] == host] if sender is None else [(host, sender)]
        for each in known:
            self._latest.pop(each, None)

    def check_memory(self, host: str, machine: Machine, now: float) -> None:
        """Check that the machine keeps no more than its limits (`Machine.held`)."""
        for name, kept, limit in exceeded(machine):
            self._broken(now, host, "memory", f"{kept} {name}, and {limit} is the limit")

    def inspect(self, host: str, machine: Machine | None, result: Mapping[str, Any], now: float) -> None:
        """Check a machine's limits and the SHA-256 of received objects (where known) at the end of the run.

        `result` is that of the machine's program.
        """
        if machine is not None:
            self.check_memory(host, machine, now)
        for sender, object_id, size, digest in result.get("received", ()):
            known = self._digests(sender, object_id) if digest is not None else ()
            if known and (size, digest) not in known:
                self._broken(now, host, "intact", f"object {object_id} of sender {sender} is not the content that was sent")

    def _digests(self, sender: int, object_id: int) -> list[tuple[int, str]]:
        """Return size and SHA-256 of each content sent under this id."""
        key = (sender, object_id)
        if key not in self._known:
            self._known[key] = [(source.size, digest_of(source)) for source in self._sent.get(key, {}).values()]
        return self._known[key]

    def add_ledger(self, ledger: Ledger) -> None:
        """Add what broke the rules of messages in a run."""
        self._rules = _message_rules(ledger)
        for broken in ledger.broken:
            self._broken(*broken)

    def add_untold(self, ledger: Ledger | None) -> None:
        """Add what the subscribers were not told, as far as the protocol guarantees it, at the end of a run."""
        if ledger is not None and (ledger.guarantees.tells or ledger.guarantees.promised):
            self._rules.append("told")
            for broken in ledger.untold:
                self._broken(*broken)

    def sent_after_end(self, kinds: Iterable[str], now: float) -> None:
        """Record a violation of quiescence: packets of these kinds were sent after the end of the run, which was at `now`."""
        self._broken(now, "", "quiescence", f"sent after the end of the run: {', '.join(kinds)}")

    # Result

    def plain(self, observed: bool) -> dict[str, Any]:
        """Return plain values: the rules checked, the number of violations, and the first of them.

        `observed`: whether quiescence was checked.
        """
        checked = [rule for rule in RULES if (rule != "order" or self._ordered) and (rule != "quiescence" or observed)]
        checked += self._rules
        return {"checked": checked, "broken": self.count, "violations": [asdict(violation) for violation in self.violations]}

    def _broken(self, now: float, host: str, rule: str, what: str) -> None:
        self.count += 1
        if len(self.violations) < KEPT:
            self.violations.append(Violation(now, host, rule, what))

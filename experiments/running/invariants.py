"""What must hold in every run, whatever goes wrong: a checker that watches and writes down what did not.

The rules: `once` (an object ends once), `intact` (what came is what was sent), `order` (objects of a sender come in order,
where the protocol guarantees it), `sent` (nothing comes that was never sent), `memory` (no machine keeps more than its own
limit), `quiescence` (a finished run sends nothing more).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from experiments.running.content import digest_of
from protocols.events import ObjectReceived
from protocols.machine import Content, Machine, Source

__all__ = ["RULES", "Invariants", "Violation"]

RULES = ("once", "intact", "order", "sent", "memory", "quiescence")
KEPT = 100
"""Violations written down; a broken protocol would fill the memory. All are counted."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, when, at which host (empty: in the network) and how."""

    at: float
    host: str
    rule: str
    what: str


class Invariants:
    """Checks one run. `ordered`: whether the protocol declares that objects are received in order."""

    def __init__(self, ordered: bool = False) -> None:
        self._ordered = ordered
        self._sent: dict[tuple[int, int], dict[tuple[int, bytes], Source]] = {}
        self._known: dict[tuple[int, int], list[tuple[int, str]]] = {}
        self._aborted: dict[str, set[tuple[int, int]]] = {}
        self._latest: dict[tuple[str, int], int] = {}
        self.violations: list[Violation] = []
        self.count = 0

    # What programs tell

    def submitted(self, node: int, object_id: int, content: Content) -> None:
        """An application handed an object to the sender with this node id."""
        # A sender that restarts counts anew, so an id may stand for several contents.
        self._sent.setdefault((node, object_id), {})[content.source.size, content.info] = content.source

    def received(self, host: str, event: ObjectReceived, again: bool, now: float) -> None:
        """Check a received object; `again`: whether the application had it already."""
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

    def forgotten(self, host: str, sender: int | None = None) -> None:
        """Forget what an application received from a sender, or from all (None): it crashed, or the sender restarted."""
        self._aborted[host] = {key for key in self._aborted.get(host, ()) if sender not in (None, key[0])}
        for known in [known for known in self._latest if known[0] == host and sender in (None, known[1])]:
            del self._latest[known]

    def weigh(self, host: str, machine: Machine, now: float) -> None:
        """Check that the machine keeps no more than its limits (`Machine.held`)."""
        for name, (held, limit) in machine.held().items():
            if held > limit:
                self._broken(now, host, "memory", f"{held} {name}, and {limit} is the limit")

    def inspect(self, host: str, machine: Machine | None, told: Mapping[str, Any], now: float) -> None:
        """At the end: what a machine keeps, and whether what its application has is what was sent, where it has a SHA-256."""
        if machine is not None:
            self.weigh(host, machine, now)
        for sender, object_id, size, digest in told.get("received", ()):
            known = self._digests(sender, object_id) if digest is not None else ()
            if known and (size, digest) not in known:
                self._broken(now, host, "intact", f"object {object_id} of sender {sender} is not the content that was sent")

    def _digests(self, sender: int, object_id: int) -> list[tuple[int, str]]:
        """Size and SHA-256 of everything that was sent under this id."""
        key = (sender, object_id)
        if key not in self._known:
            self._known[key] = [(source.size, digest_of(source)) for source in self._sent.get(key, {}).values()]
        return self._known[key]

    def spoke(self, kinds: Iterable[str], now: float) -> None:
        """Note packets of these kinds that were sent after the run was finished."""
        self._broken(now, "", "quiescence", f"still sent when all is done: {', '.join(kinds)}")

    # What came out

    def plain(self, listened: bool) -> dict[str, Any]:
        """As plain values: the rules that were checked, how often one was broken, and the first violations."""
        checked = [rule for rule in RULES if (rule != "order" or self._ordered) and (rule != "quiescence" or listened)]
        return {"checked": checked, "broken": self.count, "violations": [asdict(violation) for violation in self.violations]}

    def _broken(self, now: float, host: str, rule: str, what: str) -> None:
        self.count += 1
        if len(self.violations) < KEPT:
            self.violations.append(Violation(now, host, rule, what))

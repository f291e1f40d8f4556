"""The first transmissions that links of a simulated network lost, by identity, to be compared with a keyed emulation."""

from collections import defaultdict

from sim.watch import REASONS, Passage, Watcher

__all__ = ["FirstLosses"]


class FirstLosses(Watcher):
    """Collects the identities of first transmissions that a link lost or damaged, and of those a full queue dropped."""

    def __init__(self) -> None:
        self.lost: dict[str, set[int]] = defaultdict(set)
        """By link, as `near-far` with the names of hosts and switches."""
        self.queued: dict[str, set[int]] = defaultdict(set)

    def passed(self, passage: Passage) -> None:
        """Record the losses of a packet offered to a link."""
        identity = passage.flight.identity
        if identity is None or passage.flight.message.repair:
            return
        for fate in passage.fates:
            if REASONS["lost"] in fate.reason or REASONS["corrupt"] in fate.reason:
                self.lost[f"{passage.near}-{fate.node}"].add(identity)
            elif REASONS["dropped"] in fate.reason:
                self.queued[f"{passage.near}-{fate.node}"].add(identity)

"""Which content each link of a simulated run lost when it carried it for the first time, as emulation reports it."""

from sim.watch import REASONS, Passage, Watcher

__all__ = ["FirstDrops"]

_KEYED = frozenset({REASONS["lost"], REASONS["corrupt"]})


class FirstDrops(Watcher):
    """Notes the identities that were lost or damaged at their first transmission over a link, by link and in ascending order.

    What queues dropped is left out: that depends on time, and these losses on nothing but the seed.
    """

    def __init__(self) -> None:
        self._seen: dict[str, set[int]] = {}
        self._dropped: dict[str, list[int]] = {}

    def passed(self, passage: Passage) -> None:
        """A packet was offered to a link, or to the links of a group."""
        identity = passage.flight.identity
        if identity is None:
            return
        for node, reason in {fate.node: fate.reason for fate in passage.fates}.items():
            link = f"{passage.near}-{node}"
            seen = self._seen.setdefault(link, set())
            if identity not in seen:
                seen.add(identity)
                if reason in _KEYED:
                    self._dropped.setdefault(link, []).append(identity)

    def report(self) -> dict[str, list[int]]:
        """Identities by link like `s1-r1`; links that lost nothing are left out."""
        return {link: sorted(identities) for link, identities in self._dropped.items()}

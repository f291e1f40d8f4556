"""Multicast groups."""

from dataclasses import dataclass

__all__ = ["Group"]


@dataclass(frozen=True, slots=True)
class Group:
    """A multicast group. In emulation the name is "ip:port".

    A host with several networks, as a router is one, may name one of them: what it sends goes there alone, and when it joins,
    it receives only what comes from there, as sent to the same `Group`. Networks of a router have the names of the switches,
    hosts or routers at the other ends of its links, those of a real host the names of its devices.
    """

    name: str
    network: str = ""
    """Empty: all of them."""

    @property
    def anywhere(self) -> "Group":
        """The group on all networks."""
        return Group(self.name) if self.network else self

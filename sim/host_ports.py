"""The ports of simulated hosts that have several machines: which groups each joined, and its codec.

They lie here and not in the hosts, of which there may be a million.
"""

from collections.abc import Callable

from protocols.framing import Framing
from protocols.machine import Address, Codec, Group

__all__ = ["HostPorts"]

Members = dict[Address, list[int]]


class HostPorts:
    """The ports of all hosts, by place. A host of which no port was opened has one machine, and nothing here."""

    __slots__ = ("_codecs", "_makers", "members")

    def __init__(self) -> None:
        self.members: dict[int, Members] = {}
        """By place, the ports that joined each group; empty while no host has opened a port."""
        self._makers: dict[tuple[int, int], Callable[[], Codec]] = {}
        self._codecs: dict[tuple[int, int], Codec] = {}
        """Those that were asked for."""

    def open(self, place: int, port: int, codec: Callable[[], Codec] | None) -> None:
        """Use a port of a host, with a codec of its own; None: that of the network."""
        self.members.setdefault(place, {})
        if codec is not None:
            self._makers[place, port] = codec
            self._codecs.pop((place, port), None)

    def close(self, place: int) -> None:
        """Close the ports of a host. What is in flight is still encoded by their codecs."""
        self.members.pop(place, None)

    def join(self, place: int, port: int, group: Group) -> bool:
        """Note that a port joins a group; returns whether its host has to join it."""
        members = self.members.get(place)
        if members is None:
            return True
        ports = members.setdefault(group, [])
        if port not in ports:
            ports.append(port)
        return len(ports) == 1

    def leave(self, place: int, port: int, group: Group) -> bool:
        """Note that a port leaves a group; returns whether its host has to leave it."""
        members = self.members.get(place)
        if members is None:
            return True
        ports = members.get(group, [])
        if port not in ports:
            return False
        ports.remove(port)
        return not ports

    def groups_of(self, place: int, port: int) -> list[Group]:
        """Return the groups that a port joined."""
        members = self.members.get(place, {})
        return [group for group, ports in members.items() if port in ports and isinstance(group, Group)]

    def has_neighbours(self, place: int, port: int, to: Address) -> bool:
        """Return whether another port of the host joined a group."""
        members = self.members.get(place)
        return members is not None and any(other != port for other in members.get(to, ()))

    def framing(self, place: int, port: int, common: Callable[[], Framing]) -> Callable[[], Framing]:
        """Return what makes the framing of a port's connections: that of the port's codec if it has one, or `common`."""
        framing: Callable[[], Framing] = getattr(self._makers.get((place, port)), "framing", common)
        return framing

    def codec(self, place: int, port: int, common: Codec) -> Codec:
        """Return the codec of a port; `common` is that of the network, for ports without one of their own."""
        key = place, port
        if key not in self._makers:
            return common
        codec = self._codecs.get(key)
        if codec is None:
            codec = self._codecs[key] = self._makers[key]()
        return codec

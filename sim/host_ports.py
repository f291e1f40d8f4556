"""The ports of simulated hosts that have several machines: which groups each joined, and its codec.

They lie here and not in the hosts, of which there may be a million.
"""

from protocols.machine import Address, Codec, Group

__all__ = ["HostPorts"]

Members = dict[Address, list[int]]


class HostPorts:
    """The ports of all hosts, by place. A host of which no port was opened has one machine, and nothing here."""

    __slots__ = ("_codecs", "_members")

    def __init__(self) -> None:
        self._members: dict[int, Members] = {}
        self._codecs: dict[tuple[int, int], Codec] = {}

    @property
    def in_use(self) -> bool:
        """Whether any host has opened a port."""
        return bool(self._members)

    def open(self, place: int, port: int, codec: Codec | None) -> None:
        """Use a port of a host, with a codec of its own; None: that of the network."""
        self._members.setdefault(place, {})
        if codec is not None:
            self._codecs[place, port] = codec

    def close(self, place: int, port: int | None = None) -> None:
        """Forget a port of a host, which has left its groups; None: all ports."""
        if port is None:
            self._members.pop(place, None)
        for key in [key for key in self._codecs if key[0] == place and port in (None, key[1])]:
            del self._codecs[key]

    def join(self, place: int, port: int, group: Group) -> bool:
        """Note that a port joins a group; returns whether its host has to join it."""
        members = self._members.get(place)
        if members is None:
            return True
        ports = members.setdefault(group, [])
        if port not in ports:
            ports.append(port)
        return len(ports) == 1

    def leave(self, place: int, port: int, group: Group) -> bool:
        """Note that a port leaves a group; returns whether its host has to leave it."""
        members = self._members.get(place)
        if members is None:
            return True
        ports = members.get(group, [])
        if port not in ports:
            return False
        ports.remove(port)
        return not ports

    def groups_of(self, place: int, port: int) -> list[Group]:
        """Return the groups that a port joined."""
        members = self._members.get(place, {})
        return [group for group, ports in members.items() if port in ports and isinstance(group, Group)]

    def has_neighbours(self, place: int, port: int, to: Address) -> bool:
        """Return whether another port of the host joined a group."""
        members = self._members.get(place)
        return members is not None and any(other != port for other in members.get(to, ()))

    def codec(self, place: int, port: int, common: Codec) -> Codec:
        """Return the codec of a port; `common` is that of the network."""
        return self._codecs.get((place, port), common)

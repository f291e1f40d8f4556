"""The ports of a real host: the sockets by which the datagrams of its machines leave and arrive, and the codecs of each."""

import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from emu.addresses import SocketAddress, at_port, is_multicast, socket_address, socket_address_of
from emu.loop import HostLoop
from emu.udp import SendQueue, bind_receiver, open_receiver, open_transmitter
from emu.udp_options import UdpOptions, allow_loopback, join_group
from protocols.batches import RunCodec
from protocols.errors import UsageError
from protocols.machine import Address, Codec, Group, Message

__all__ = ["Devices", "UdpPort", "UdpPorts", "make_ports"]


class Devices:
    """The devices on which a host joins groups, and those of its networks by name (None: a network is named by its device)."""

    def __init__(self, usual: Sequence[str] = (), networks: Mapping[str, str] | None = None) -> None:
        self._usual = usual
        self._networks = networks

    def of(self, group: Group) -> Sequence[str]:
        """Return the devices on which a group is joined; none: the one of the host's address. UsageError as for `number`."""
        if not group.network:
            return self._usual
        self.number(group)
        return [group.network if self._networks is None else self._networks[group.network]]

    def number(self, group: Group) -> int:
        """Return the number of the device of a group's network. UsageError if there is no such network."""
        known = {name: name for _, name in socket.if_nameindex()} if self._networks is None else self._networks
        try:
            return socket.if_nametoindex(known[group.network])
        except (KeyError, OSError):
            what = f"networks here are {', '.join(known)}" if known else "this host has one network, without a name"
            raise UsageError(f"{group.network!r} is no network of this host; {what}") from None


class UdpPort:
    """A port of a host: its datagrams leave from `transmitter`, and arrive there and at `receiver`."""

    __slots__ = (
        "decode",
        "encode",
        "is_writing",
        "number",
        "own_address",
        "queue",
        "receiver",
        "run_codec",
        "transmitter",
        "where",
    )

    def __init__(self, number: int, transmitter: socket.socket, receiver: socket.socket, burst: int) -> None:
        self.number = number
        self.transmitter = transmitter
        self.own_address: SocketAddress = transmitter.getsockname()
        """The source of its datagrams."""
        self.receiver = receiver
        self.where: SocketAddress = receiver.getsockname()
        """Where others reach it."""
        self.queue = SendQueue(transmitter, burst)
        self.is_writing = False
        """Whether the event loop watches the transmitter for room in its socket buffer."""
        self.encode: Callable[[Message], bytes]
        self.decode: Callable[[bytes], Message]
        self.run_codec: RunCodec | None = None

    def use(self, codec: Codec) -> None:
        """Encode and decode by this codec from now on."""
        self.encode, self.decode = codec.encode, codec.decode
        self.run_codec = codec if isinstance(codec, RunCodec) else None


def _open_port(number: int, where: SocketAddress, *, address: str, options: UdpOptions, buffers: int, burst: int) -> UdpPort:
    """Open a port that others reach at `where`, a socket address of `address`. UsageError if that is impossible.

    `buffers` is the bytes of each socket's buffers, `burst` the most packets in one system call.
    """
    transmitter = open_transmitter(address, options, buffers, 0 if number else options.tx_port)
    return UdpPort(number, transmitter, open_receiver(where, address, buffers, (), options), burst)


def make_ports(
    loop: HostLoop,
    address: str,
    port: int,
    tuned: tuple[UdpOptions, int, int],
    devices: "Devices",
    on_readable: Callable[[socket.socket, Address], None],
    after_joining: Callable[[Callable[[], None]], None],
) -> "UdpPorts":
    """Make the ports of a host at an address, from UDP port `port` on; `tuned` are options, buffers and burst of it."""
    options, buffers, burst = tuned
    make = partial(_open_port, address=address, options=options, buffers=buffers, burst=burst)
    bind = None if options.tx_only else partial(bind_receiver, address=address, buffers=buffers, options=options)
    join = partial(join_group, address=address, sources=options.sources)
    return UdpPorts(loop, socket_address(address, port), make, bind, join, on_readable, after_joining, devices)


class UdpPorts:
    """The ports of one host, by number, and the groups they joined.

    Port n receives unicasts at `where`, n above its UDP port. `make` opens a port. `bind_group` binds a socket to
    the address of a group (None: groups are not joined), and `join_group` lets it join on some of the `devices`.
    `on_readable(socket, address)` is called for a socket that packets arrived at, and `after_joining(action)` calls `action`
    when packets of a group that is joined now arrive.
    """

    def __init__(
        self,
        loop: HostLoop,
        where: SocketAddress,
        make: Callable[[int, SocketAddress], UdpPort],
        bind_group: Callable[[SocketAddress], socket.socket] | None,
        join_group: Callable[..., None],
        on_readable: Callable[[socket.socket, Address], None],
        after_joining: Callable[[Callable[[], None]], None],
        devices: Devices,
    ) -> None:
        self.devices = devices
        self._after_joining = after_joining
        self._loop, self._where, self._make, self._on_readable = loop, where, make, on_readable
        self._bind_group, self._join_group = bind_group, join_group
        self._ports: dict[int, UdpPort] = {}
        self._sockets: dict[Address, socket.socket] = {}
        # The port whose codec reads what arrives at an address.
        self.readers: dict[Address, UdpPort] = {}
        """By address the port that reads what arrives there: of several in a group the one that joined first."""
        self._members: dict[Group, list[int]] = {}
        self._places: dict[Group, tuple[SocketAddress, int]] = {}
        # By group, the latest request to join that has not taken effect: a group may be left and joined again meanwhile.
        self._joins: dict[Group, object] = {}
        self._is_reading = False

    def __getitem__(self, number: int) -> UdpPort:
        return self._ports[number]

    def numbers(self) -> list[int]:
        """Return the numbers of the open ports."""
        return list(self._ports)

    def queues(self) -> list[SendQueue]:
        """Return the queues of the open ports."""
        return [port.queue for port in self._ports.values()]

    def open(self, number: int, codec: Codec, *, held: bool) -> UdpPort:
        """Open a port, or give one that is open another codec. A `held` one sends nothing before `SendQueue.retry`."""
        port = self._ports.get(number)
        if port is None:
            first = self._where[1]
            port = self._ports[number] = self._make(number, at_port(self._where, first + number))
            if not first:
                # The kernel chose it.
                self._where = port.where
            port.queue.blocked = port.is_writing = held
            for sock in (port.transmitter, port.receiver):
                self.readers[sock.getsockname()] = port
                self._add(sock.getsockname(), sock)
        if len(self._ports) > 1:
            for each in self._ports.values():
                # So that the kernel delivers a multicast of one port to the others.
                allow_loopback(each.transmitter)
        port.use(codec)
        return port

    def close_port(self, number: int) -> None:
        """Leave the groups of a port and close it; port 0 stays open for the next machine."""
        for group in [group for group, ports in self._members.items() if number in ports]:
            self.leave(group, number)
        if number:
            port = self._ports.pop(number)
            for sock in (port.transmitter, port.receiver):
                self._close(sock.getsockname())

    def start(self) -> None:
        """Call `on_readable` for all sockets from now on."""
        self._is_reading = True
        for address, sock in self._sockets.items():
            self._loop.add_reader(sock, self._on_readable, sock, address)

    def stop(self) -> None:
        """Stop calling `on_readable`, and close all ports but port 0."""
        self._is_reading = False
        for number in list(self._ports):
            self.close_port(number)
        for sock in self._sockets.values():
            self._loop.remove_reader(sock)

    def close(self) -> None:
        """Close all sockets."""
        for address in list(self._sockets):
            self._close(address)

    # Groups

    def join(self, group: Group, number: int = 0) -> None:
        """Have a port receive from a group; one with a unicast address is a port of this host.

        Ports that join the same group speak the same protocol: the codec of the first one reads what arrives. UsageError, and
        nothing changes, if another program has the port, or this one may not use it, also where joining takes time.
        """
        members = self._members.setdefault(group, [])
        if number not in members:
            members.append(number)
        self.readers[group] = self._ports[members[0]]
        if len(members) == 1:
            request = self._joins[group] = object()
            try:
                self._bind(group)
                self._after_joining(partial(self._receive_group, group, request, self.devices.of(group)))
            except UsageError:
                self.leave(group, number)
                raise

    def _bind(self, group: Group) -> None:
        """Open the socket of a group; one with the address of a port has that port's."""
        where = socket_address_of(group.name)
        if not is_multicast(where[0]):
            where = at_port(self._where, where[1])
        if self._bind_group is not None and where not in self._sockets:
            self._add(group, self._bind_group(where))

    def _receive_group(self, group: Group, request: object, devices: Sequence[str]) -> None:
        """Receive from a group, unless it has been left or joined again since."""
        where = socket_address_of(group.name)
        if self._joins.get(group) is request and group in self._sockets and is_multicast(where[0]):
            self._join_group(self._sockets[group], where, devices=devices)

    def leave(self, group: Group, number: int = 0) -> None:
        """Have a port receive no more from a group, whose socket is closed when no other port is a member."""
        members = self._members.get(group, [])
        if number in members:
            members.remove(number)
        if members:
            self.readers[group] = self._ports[members[0]]
            return
        self._members.pop(group, None)
        self._joins.pop(group, None)
        self._close(group)

    # What arrives and what leaves

    def place_of(self, to: Address) -> tuple[SocketAddress, int]:
        """Return where datagrams to an address are sent, and the number of the device they leave by (0: any)."""
        if type(to) is not Group:
            return to, 0  # type: ignore[return-value]
        place = self._places.get(to)
        if place is None:
            place = self._places[to] = socket_address_of(to.name), self.devices.number(to) if to.network else 0
        return place

    def port_of(self, address: Address) -> int | None:
        """Return the number of the port that an address belongs to, None for those of other hosts and for groups."""
        port = None if type(address) is Group else self.readers.get(address)
        return None if port is None else port.number

    def is_own(self, source: SocketAddress, to: Address) -> bool:
        """Return whether a datagram comes from a port of this host and is for no other port."""
        port = self.readers.get(source)
        if port is None:
            return False
        if type(to) is Group:
            return not any(member != port.number for member in self._members.get(to, ()))
        return self.port_of(to) == port.number

    def flush(self) -> list[UdpPort]:
        """Send what is queued; return the ports of which the kernel takes no more now, each once until it takes some again."""
        full = []
        for port in self._ports.values():
            port.queue.flush()
            if port.queue.blocked and not port.is_writing:
                full.append(port)
        return full

    def _add(self, address: Address, sock: socket.socket) -> None:
        self._sockets[address] = sock
        if self._is_reading:
            self._loop.add_reader(sock, self._on_readable, sock, address)

    def _close(self, address: Address) -> None:
        self.readers.pop(address, None)
        sock = self._sockets.pop(address, None)
        if sock is not None:
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)
            sock.close()

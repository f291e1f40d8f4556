"""`mcastlab tunnel`: a tunnel of protocols/tunnel on a real network."""

import asyncio
import json
import secrets
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from emu.addresses import SocketAddress, is_multicast, socket_address_of, text_of
from emu.host import UdpHost
from emu.udp_options import UdpOptions
from emu.web.listening import read_token
from experiments.commands.options import Group as GroupOption
from experiments.commands.options import Json, Metrics, Stats, option_errors, time_limit
from experiments.output.extras import need
from experiments.output.safe_text import printable
from experiments.running.authentication import read_keys
from experiments.running.live import Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.scenario.user_settings import read_settings
from protocols.admin.node import Node
from protocols.admin.registration import Registration, registration_of
from protocols.errors import UnsupportedError, UsageError, WireError
from protocols.machine import Codec, Group
from protocols.norm.messages import Fti
from protocols.norm.wire.sizes import header_size
from protocols.rng import Rng
from protocols.tunnel import MEASURES, Tunnel, TunnelOptions
from protocols.tunnel.role import make_codec, room_for_segments
from topologies.units import format_duration

__all__ = ["tunnel"]

USUAL_SEGMENT = 1400


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tunnel is: the group on a device of the site, the address for datagrams, and its number."""

    group: Group
    listen: SocketAddress
    node: int


def tunnel(
    *,
    group: GroupOption,
    lan: Annotated[str, typer.Option("--lan", help="Device of the site, on which the group is joined.", metavar="IF")],
    listen: Annotated[
        str, typer.Option("--listen", help="Own address and port for datagrams of other tunnels.", metavar="ADDR:PORT")
    ],
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", help="Another tunnel; can be repeated.", metavar="ADDR:PORT", show_default=False),
    ] = None,
    admin: Annotated[
        str | None, typer.Option("--admin", help="Registry that names the other tunnels.", metavar="URL", show_default=False)
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the registry's token.", metavar="FILE", show_default=False)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="Name in the registry.  (default: that of the machine)", metavar="NAME", show_default=False
        ),
    ] = None,
    ring: Annotated[int, typer.Option("--ring", help="Packets that wait for the network at the most.", metavar="N")] = 256,
    pace: Annotated[
        str | None,
        typer.Option("--pace", help="Rate to each peer.  (default: as packets come)", metavar="RATE", show_default=False),
    ] = None,
    brake: Annotated[bool, typer.Option("--brake", help="Tell publishers of the site when to slow down.")] = False,
    hops: Annotated[
        int, typer.Option("--hops", help="Tunnels that a packet passes; more than 1 if not all know each other.", metavar="N")
    ] = 1,
    site: Annotated[
        int,
        typer.Option(
            "--site",
            help="Number of the site.  (default: as the tunnel that serves it already)",
            metavar="N",
            show_default=False,
        ),
    ] = 0,
    segment: Annotated[
        int, typer.Option("--segment", help="Largest segment of the site's nodes, in bytes.", metavar="N")
    ] = USUAL_SEGMENT,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", help="Keys by which tunnels authenticate datagrams.", metavar="FILE", show_default=False),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="End after this time.  (default: never)", metavar="TIME", show_default=False)
    ] = None,
    stats: Stats = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Carry a multicast group between this site and others, by unicast, until --timeout or Ctrl-C.

    Exit code 0: it carried; 2: bad input; 3: it can't listen there, or a package is missing; 130: interrupted.
    """
    longest = time_limit("--timeout", timeout)
    wanted = WantedStatistics.of(stats, metrics)
    given: dict[str, Any] = {"ring": ring, "brake": brake, "hops": hops, "site": site, "key_file": str(key_file or "")}
    options = _options(given | ({} if pace is None else {"pace": pace}))
    _check_segment(segment, options)
    keys = read_keys(key_file) if key_file is not None else {}
    place = _place(group, lan, listen)
    peers = _peers(peer or (), place)
    if bool(peers) == (admin is not None):
        raise UsageError("--peer: other tunnels are named by --peer, each, or by a registry with --admin; one of the two")
    if admin is None:
        _check_unused({"--token-file": token_file, "--name": name})
    registry = None if admin is None else _registry(admin, token_file, name, options.site or place.node, place)
    with live() as runner:
        host = _host(runner, place, make_codec(None, keys, time.time, enrolled=False))
        try:
            machine = Tunnel(host, place.node, place.group, options)
            machine.update_peers(peers)
            host.run(machine, lambda event: None)
            _tell_beginning(place, peers, as_json)
            ending = runner.play(_serve(runner, host, machine, registry, wanted, as_json), longest)
        finally:
            host.close()
    _tell_end(machine, ending.seconds, as_json)
    return 130 if ending.interrupted else 0


def _options(given: dict[str, Any]) -> TunnelOptions:
    """Return the options of the tunnel. ConfigError names the option of the command."""
    with option_errors("tunnel"):
        found: TunnelOptions = read_settings(TunnelOptions, given, "tunnel", ())
    return found


def _check_segment(segment: int, options: TunnelOptions) -> None:
    """UsageError if packets with segments of this size don't fit a datagram."""
    most = room_for_segments(header_size(Fti(0, 1, max(segment, 1), 1, 0)), options)
    if not 1 <= segment <= most:
        raise UsageError(
            f"--segment: value {segment} is not allowed; 1 to {most}, so that a packet in a datagram fits 1472 bytes"
        )


def _place(group: str, lan: str, listen: str) -> _Place:
    """Return where the tunnel is. UsageError names the option."""
    where = socket_address_of(group, "--group")
    if not is_multicast(where[0]):
        raise UsageError(f"--group: value {group!r} is not allowed; a multicast address and a port, like 239.7.7.7:6003")
    own = socket_address_of(listen, "--listen")
    devices = [device for _, device in socket.if_nameindex()]
    if lan not in devices:
        raise UsageError(f"--lan: value {lan!r} is not allowed; a device of this machine: {', '.join(devices)}")
    number = int.from_bytes(socket.inet_pton(socket.AF_INET6 if len(own) == 4 else socket.AF_INET, own[0])[-4:])
    return _Place(Group(text_of(where), lan), own, number)


def _peers(texts: Sequence[str], place: _Place) -> list[Node]:
    """Return the tunnels that are named by their addresses. UsageError for this one, one named twice, and no host's address."""
    found: dict[SocketAddress, Node] = {}
    for number, text in enumerate(texts, 1):
        where = socket_address_of(text, "--peer")
        problem = ""
        if where == place.listen:
            problem = "that is this tunnel itself"
        elif where in found:
            problem = "it is named twice"
        elif len(where) != len(place.listen) or is_multicast(where[0]):
            problem = f"the address of one host, of the IP version of {text_of(place.listen)}"
        if problem:
            raise UsageError(f"--peer: value {text!r} is not allowed; {problem}")
        found[where] = Node(number, text, 0, where[0], where[1], place.group.name)
    return list(found.values())


def _check_unused(options: Mapping[str, object]) -> None:
    """UsageError for an option that is given without --admin and says nothing then."""
    for option, value in options.items():
        if value is not None:
            raise UsageError(f"{option}: is not allowed without --admin")


@dataclass(frozen=True, slots=True)
class _Registry:
    """The registry of a tunnel, and the tunnel's entry there."""

    url: str
    registration: Registration
    secret: str
    token_file: Path | None


def _registry(url: str, token_file: Path | None, name: str | None, site: int, place: _Place) -> _Registry:
    """Return the registry. UnsupportedError without its client, UsageError for what is no URL, token, or name of a tunnel."""
    need("tunnel --admin", "httpx")
    from emu.admin.client import check_url

    own_name = socket.gethostname() if name is None else name
    own = Registration(own_name, site, place.listen[1], place.group.name, place.listen[0])
    try:
        registration_of(own.plain())
    except WireError as error:
        raise UsageError(f"--{error}") from error
    return _Registry(check_url(url), own, "" if token_file is None else read_token(token_file), token_file)


def _host(runner: Live, place: _Place, codec: Codec) -> UdpHost:
    """Return a host at the address. UnsupportedError if the port is in use, also by a program that shares it."""
    try:
        with socket.socket(socket.AF_INET6 if len(place.listen) == 4 else socket.AF_INET, socket.SOCK_DGRAM) as alone:
            alone.bind(place.listen)
        return UdpHost(
            runner.loop,
            codec,
            interface=place.listen[0],
            port=place.listen[1],
            rng=Rng(secrets.randbits(64)),
            options=UdpOptions(ttl=1),
        )
    except (UsageError, OSError) as error:
        why = f"can't receive at {text_of(place.listen)}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise UnsupportedError(f"--listen: {why}") from error


async def _serve(
    runner: Live, host: UdpHost, machine: Tunnel, registry: _Registry | None, wanted: WantedStatistics, as_json: bool
) -> None:
    """Show the statistics that are wanted and stay in the list of the registry, until the command ends."""
    with wanted.told(runner, host, MEASURES, as_json=as_json):
        if registry is None:
            await asyncio.Event().wait()
            return
        from emu.admin.client import HttpRegistryClient

        def update_peers(nodes: Sequence[Node]) -> None:
            machine.update_peers(nodes)
            _tell_peers(nodes, as_json)

        client = HttpRegistryClient(
            registry.url,
            registry.registration,
            update_peers,
            machine.counters,
            address=host.unicast_address[0],
            secret=registry.secret,
            token_file=registry.token_file,
            told=partial(_tell_registry, as_json=as_json),
        )
        async with client:
            await client.run()


def _tell_beginning(place: _Place, peers: Sequence[Node], as_json: bool) -> None:
    if as_json:
        told = {"event": "listening", "at": text_of(place.listen), "group": place.group.name, "lan": place.group.network}
        _print(told | {"peers": [_text(node) for node in peers]})
    else:
        typer.echo(f"carrying {place.group.name} of {place.group.network}, listening at {text_of(place.listen)}", err=True)


def _tell_peers(nodes: Sequence[Node], as_json: bool) -> None:
    if as_json:
        _print({"event": "peers", "peers": [_text(node) for node in nodes if not node.paused]})
    else:
        typer.echo(f"peers: {', '.join(_text(node) for node in nodes if not node.paused) or 'none'}", err=True)


def _tell_registry(text: str, as_json: bool) -> None:
    if as_json:
        _print({"event": "registry", "text": text})
    else:
        typer.echo(printable(text), err=True)


def _text(node: Node) -> str:
    return printable(f"{node.address}:{node.port}")


def _print(told: dict[str, Any]) -> None:
    typer.echo(json.dumps(told))
    sys.stdout.flush()


def _tell_end(machine: Tunnel, elapsed: float, as_json: bool) -> None:
    counts = machine.counts()
    if as_json:
        _print({"event": "summary", "ok": True, "seconds": elapsed, **counts})
    else:
        text = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)
        typer.echo(f"served for {format_duration(round(elapsed, 3))}: {text or 'nothing was carried'}", err=True)

"""`mcastlab pub`: publish messages from files, lines of standard input, or generated ones, to a multicast group."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from experiments.commands.messaging_options import (
    Application,
    Count,
    Hops,
    Management,
    MessagingProtocol,
    NodeFile,
    OptionalGroup,
    bus,
    check_names,
    check_unused,
    chosen,
    connection,
    per_second,
)
from experiments.commands.options import Iface, Json, Metrics, Stats, duration, size_in_bytes, time_limit
from experiments.commands.pub_input import LARGEST
from experiments.commands.pub_messages import MessageOptions, publish_messages
from experiments.commands.pub_updates import UpdateOptions, publish_updates
from experiments.running.authentication import readable_keys
from experiments.running.live_statistics import WantedStatistics
from protocols.distributor.subjects import check_subject
from protocols.errors import ConfigError, UsageError
from protocols.jms import check_priority, property_of, topic_of

__all__ = ["pub"]


def pub(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC [FILE]...", help="Topic, and files that are messages.  (without files: lines of standard input)"
        ),
    ] = None,
    *,
    group: OptionalGroup = None,
    protocol: MessagingProtocol = "fjm2",
    iface: Iface = None,
    config: NodeFile = None,
    priority: Annotated[
        int | None,
        typer.Option(help="Priority; the highest goes first.  (default: 4)", metavar="0..9", show_default=False),
    ] = None,
    ttl: Annotated[
        str | None, typer.Option(help="Time after which messages expire.  (default: never)", metavar="TIME", show_default=False)
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", help="Property as name=value or name:type=value; may be repeated.", metavar="PROPERTY"),
    ] = None,
    body: Annotated[
        Literal["text", "bytes", "map", "object"] | None,
        typer.Option(
            "--type",
            help="Body of a message; map and object are read as JSON.  (default: text of lines, bytes of files)",
            metavar="text|bytes|map|object",
            show_default=False,
        ),
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            help="Distributor: subject, as /quotes/ABB; may be repeated.  (default: each line begins with its own)",
            metavar="SUBJECT",
            show_default=False,
        ),
    ] = None,
    application: Application = None,
    size: Annotated[
        str | None,
        typer.Option(help="Generate messages of this size instead of reading lines.", metavar="SIZE", show_default=False),
    ] = None,
    count: Count = None,
    rate: Annotated[
        str | None,
        typer.Option(help="Messages per second, as 500/s.  (default: as fast as possible)", metavar="N", show_default=False),
    ] = None,
    gap: Annotated[
        str | None, typer.Option(help="Time between messages, in place of a rate.", metavar="TIME", show_default=False)
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(help="Most UDP payload, retransmissions included.", metavar="RATE", show_default=False)
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(
            help="Content of a packet at most.  (default: 1400, Distributor 8192)", metavar="SIZE", show_default=False
        ),
    ] = None,
    holdback: Annotated[
        str | None,
        typer.Option(
            help="Distributor: longest wait of an update for others.  (default: 10ms)", metavar="TIME", show_default=False
        ),
    ] = None,
    stay: Annotated[
        str | None,
        typer.Option(
            help="Distributor: time to answer requests after the last, longer while some come.  (default: 1s)",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    tunnel_key_file: Annotated[
        Path | None,
        typer.Option(
            help="Keys of the site's tunnel; without one of them its demands to slow down are ignored.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    hops: Hops = None,
    timeout: Annotated[
        str | None, typer.Option(help="Give up after this time.  (default: never)", metavar="TIME", show_default=False)
    ] = None,
    management: Management = None,
    stats: Stats = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Publish messages, until the end of the files or of standard input, or --count.

    Subscribers do not confirm what they have. Exit code 0: everything was sent; 1: not; 2: bad input; 130: interrupted.
    """
    octets = None if size is None else size_in_bytes("--size", size)
    if octets is not None and octets > LARGEST:
        raise UsageError(f"--size: value {size!r} is not allowed; at most {LARGEST:,} bytes")
    pace = per_second(rate, gap)
    longest, wanted = time_limit("--timeout", timeout), WantedStatistics.of(stats, metrics)
    own = {
        "--subject": subject,
        "--application": application,
        "--holdback": holdback,
        "--stay": stay,
        "--management": management,
    }
    other = {"--priority": priority, "--ttl": ttl, "--property": properties, "--type": body, "--config": config}
    other |= {"--tunnel-key-file": tunnel_key_file}
    if protocol == "distributor":
        check_unused(protocol, other)
        choice = chosen(protocol, segment=segment or "8192", holdback=holdback or "10ms", rate=bandwidth)
        opened = connection(choice, group, iface, application or "mcastlab pub", management, hops)
        subjects = _subjects(names or [], subject or [])
        updates = UpdateOptions(subjects, count, pace, duration("--stay", stay or "1s"), octets)
        return publish_updates(opened, updates, longest, wanted, as_json=as_json)
    check_unused(protocol, own)
    topic, files = _topic_and_files(names or [], octets)
    given = MessageOptions(topic, files, count, pace, octets, body, _head(priority, ttl, properties or []))
    keys = None if tunnel_key_file is None else readable_keys("--tunnel-key-file", tunnel_key_file)
    opened_bus = bus(
        *(protocol, "publisher", config, group, iface, hops), segment=segment, rate=bandwidth, tunnel_key_file=keys
    )
    try:
        return publish_messages(opened_bus, given, longest, wanted, as_json=as_json)
    except ConfigError as error:
        raise ConfigError(f"{config or '--config'}: protocol.{error}") from error


def _subjects(names: list[str], subjects: list[str]) -> list[str]:
    """Return the subjects of updates. UsageError for files, and for a subject that can't be published."""
    if len(names) > 1:
        raise UsageError(f"FILE: {names[1]!r} is not allowed; updates of the Distributor are lines or generated ones")
    found = [*names, *subjects]
    check_names("--subject", check_subject, found)
    return found


def _topic_and_files(names: list[str], size: int | None) -> tuple[str, list[Path]]:
    """Return the topic and the files. UsageError for what is no topic, and for files beside generated messages."""
    if not names:
        raise UsageError("TOPIC: is missing; mcastlab pub TOPIC [FILE]...")
    if size is not None and len(names) > 1:
        raise UsageError("--size: generated messages and files at the same time are not allowed")
    if "" in names[1:]:
        raise UsageError("FILE: value '' is not allowed; the name of a file")
    topic_of(f"topic:{names[0]}", "TOPIC")
    return names[0], [Path(name) for name in names[1:]]


def _property(text: str) -> tuple[str, Any]:
    """Return name and value of a property. UsageError names the option."""
    try:
        return property_of(text)
    except UsageError as error:
        raise UsageError(f"--property: {str(error).removeprefix('property ')}") from error


def _head(priority: int | None, ttl: str | None, properties: list[str]) -> dict[str, Any]:
    """Return what the options say of the head of each message. UsageError names the option."""
    lifetime = None if ttl is None else duration("--ttl", ttl)
    if lifetime == 0:
        raise UsageError(f"--ttl: value {ttl!r} is not allowed; a time above 0")
    found = list(map(_property, properties))
    named = dict(found)
    for name, _ in found if len(named) < len(found) else ():
        if sum(other == name for other, _ in found) > 1:
            raise UsageError(f"--property: {name!r} is not allowed twice")
    return {"priority": check_priority(4 if priority is None else priority, "--priority"), "ttl": lifetime, "properties": named}

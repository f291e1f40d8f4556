"""`mcastlab sub`: print the messages of a multicast group on a real network."""

from typing import Annotated, Literal

import typer

from experiments.commands.messaging_options import (
    Application,
    Count,
    Management,
    MessagingProtocol,
    NodeFile,
    OptionalGroup,
    bus,
    check_names,
    check_unused,
    chosen,
    connection,
)
from experiments.commands.options import Iface, Json, Metrics, Stats, time_limit
from experiments.commands.sub_messages import Wanted, print_messages
from experiments.commands.sub_updates import print_updates
from experiments.running.live_statistics import WantedStatistics
from protocols.distributor.subjects import check_pattern
from protocols.errors import UsageError

__all__ = ["sub"]


def sub(
    topics: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC", help="Topics; of the Distributor subjects, where * and ... stand for levels."),
    ],
    *,
    group: OptionalGroup = None,
    protocol: MessagingProtocol = "fjm2",
    iface: Iface = None,
    config: NodeFile = None,
    selector: Annotated[
        str | None,
        typer.Option(help="Condition on properties, as \"price > 10 AND symbol = 'A'\".", metavar="S", show_default=False),
    ] = None,
    order: Annotated[
        Literal["none", "fifo"] | None,
        typer.Option(
            help="Print messages as they are complete (none), or as they were published.  (default: none)", metavar="none|fifo"
        ),
    ] = None,
    form: Annotated[
        Literal["text", "json", "raw"] | None,
        typer.Option(
            "--format",
            help="Print bodies as lines, messages as JSON, or the bytes of bodies.  (default: text)",
            metavar="text|json|raw",
        ),
    ] = None,
    application: Application = None,
    count: Count = None,
    segment: Annotated[
        str | None,
        typer.Option(help="Distributor: most bytes in a datagram.  (default: 8192)", metavar="SIZE", show_default=False),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the summary only.")] = False,
    timeout: Annotated[
        str | None, typer.Option(help="End after this time.  (default: never)", metavar="TIME", show_default=False)
    ] = None,
    management: Management = None,
    stats: Stats = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Print messages as they come, until --count, --timeout or Ctrl-C.

    Exit code 0: the wanted messages came, and nothing was lost, dropped or refused, or is missing or incomplete at the end; 1:
    not; 2: bad input; 130: interrupted.
    """
    longest, wanted = time_limit("--timeout", timeout), WantedStatistics.of(stats, metrics)
    if protocol == "distributor":
        check_unused(protocol, {"--selector": selector, "--order": order, "--format": form, "--config": config})
        check_names("TOPIC", check_pattern, topics)
        choice = chosen(protocol, segment=segment or "8192")
        opened = connection(choice, group, iface, application or "mcastlab sub", management)
        return print_updates(opened, topics, count, longest, wanted, quiet=quiet, as_json=as_json)
    check_unused(protocol, {"--application": application, "--segment": segment, "--management": management})
    if as_json and form not in (None, "json"):
        raise UsageError(f"--format: value {form!r} is not allowed with --json; json")
    opened_bus = bus(protocol, "subscriber", config, group, iface, None, order=order)
    asked = Wanted(topics, selector or "", count, "json" if as_json else form or "text", quiet)
    return print_messages(opened_bus, asked, longest, wanted, as_json=as_json)

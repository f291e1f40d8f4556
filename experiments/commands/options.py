"""Options that several commands share, and the conversion of their values."""

from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape, glob
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from protocols.errors import ConfigError, UsageError
from topologies.units import format_size, parse_duration, parse_size

if TYPE_CHECKING:
    from experiments.session.membership import Membership

__all__ = [
    "Backend",
    "Brief",
    "Columns",
    "Group",
    "Iface",
    "Jobs",
    "Json",
    "Congestion",
    "FairTo",
    "FeedbackMode",
    "FirstSeed",
    "KeyFile",
    "Master",
    "Metrics",
    "NodeId",
    "Remote",
    "ScenarioFile",
    "Sets",
    "Stats",
    "Wide",
    "Yes",
    "duration",
    "membership",
    "norm_config",
    "option_errors",
    "scenarios_beginning",
    "size_in_bytes",
    "time_limit",
]

LONGEST = 1e9
"""Longest time that an option may limit, in seconds: 31 years."""

Group: TypeAlias = Annotated[str, typer.Option("--group", help="Multicast address and port.", metavar="ADDR:PORT")]
Iface: TypeAlias = Annotated[
    str | None, typer.Option("--iface", help="Device or IPv4 address.  (default: the system's route)", metavar="IF")
]
NodeId: TypeAlias = Annotated[
    int | None,
    typer.Option("--node", help="32-bit node id, unique in the group.  (default: a new one at each start)", metavar="N"),
]
KeyFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--key-file", help="Keys of the group, to authenticate every packet.", metavar="FILE", show_default=False),
]
Congestion: TypeAlias = Annotated[
    str,
    typer.Option(help="Congestion control; set it at sender and receivers.", metavar="none|norm|loss-tolerant|ecn"),
]
FairTo: TypeAlias = Annotated[
    str, typer.Option("--fair-to", help="The TCP that --congestion is fair to.", metavar="reno|cubic")
]
FeedbackMode: TypeAlias = Annotated[
    str, typer.Option(help="NACKs and ACKs: to the group, to the sender alone, or none.", metavar="multicast|unicast|none")
]
Backend: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Backend: sim (the simulator) or emu (Mininet).  (default: emu if `nodes` names foreign programs)",
        metavar="sim|emu",
    ),
]


def scenarios_beginning(incomplete: str) -> list[str]:
    """Return the ready scenarios and the YAML files whose names begin so, for completion in a shell.

    For anything else, such as folders, the shell completes names of files itself.
    """
    # Other commands need no scenarios.
    from experiments.scenario.ready import ready_scenarios

    files = sorted(path for path in glob(f"{escape(incomplete)}*") if path.endswith((".yaml", ".yml")))
    return [*(name for name in ready_scenarios() if name.startswith(incomplete)), *files]


ScenarioFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO",
        help="Scenario file, or name of a ready scenario.",
        show_default=False,
        autocompletion=scenarios_beginning,
    ),
]
Sets: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Replace one value of the scenario; may be repeated.", metavar="key.path=value", show_default=False
    ),
]
FirstSeed: TypeAlias = Annotated[
    int | None, typer.Option("--seed", help="First seed.  (default: the scenario's)", metavar="N", show_default=False)
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option("--jobs", help="Parallel processes.  (default: all processors)", metavar="N", min=1, show_default=False),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Stats: TypeAlias = Annotated[
    str | None, typer.Option("--stats", help="Show statistics at this interval.", metavar="TIME", show_default=False)
]
Metrics: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        help="Serve statistics to Prometheus; on 127.0.0.1 without an address.",
        metavar="ADDR:PORT",
        show_default=False,
    ),
]
Wide: TypeAlias = Annotated[bool, typer.Option("--wide", help="Show every column, however long the lines get.")]
Columns: TypeAlias = Annotated[
    str, typer.Option("--columns", help="Show these columns, in this order.", metavar="A,B,...", show_default=False)
]
Brief: TypeAlias = Annotated[bool, typer.Option("--brief", help="Print one line.")]
Yes: TypeAlias = Annotated[
    bool, typer.Option("--yes", help="Allow a simulation estimated to need more memory or time than there is.")
]
Master: TypeAlias = Annotated[
    str,
    typer.Option("--master", help="Where Spark runs: local[N], local[*], spark://HOST:PORT, yarn, k8s://...", metavar="MASTER"),
]
Remote: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--remote", help="Spark Connect server to use instead of --master.", metavar="sc://HOST:PORT", show_default=False
    ),
]


def duration(option: str, text: str) -> float:
    """Return the seconds of an option like 500ms. UsageError names the option."""
    try:
        return parse_duration(text)
    except ConfigError as error:
        raise UsageError(f"{option}: {error}") from error


def size_in_bytes(option: str, text: str, least: int = 0) -> int:
    """Return the bytes of an option like 64kB. UsageError names the option."""
    try:
        octets = parse_size(text)
    except ConfigError as error:
        raise UsageError(f"{option}: {error}") from error
    if octets < least:
        raise UsageError(f"{option}: value {text!r} is not allowed; at least {format_size(least)}")
    return octets


def time_limit(option: str, text: str | None) -> float:
    """Return the seconds of an option that limits a time; infinity if it was not given."""
    if text is None:
        return inf
    limit = duration(option, text)
    if limit > LONGEST:
        raise UsageError(f"{option}: value {text!r} is not allowed; a time of at most {LONGEST:.0f} s")
    return limit


@contextmanager
def option_errors(where: str, **names: str) -> Iterator[None]:
    """Name the option in a ConfigError about a setting under the key `where`; `names` are options not called as their settings.

    >>> with option_errors("protocol", rate="bandwidth"): ...  # "protocol.rate: ..." becomes "--bandwidth: ..."
    """
    try:
        yield
    except ConfigError as error:
        key, _, why = str(error).removeprefix(f"{where}.").partition(": ")
        raise ConfigError(f"--{names.get(key, key).replace('_', '-')}: {why}") from error


def norm_config(**given: Any) -> Any:
    """Make a NORM config from options as the user wrote them, None where one was left out. ConfigError names the option."""
    # Commands on sweeps share this module and need no protocol, which takes long to import.
    from experiments.scenario.protocol_choice import ProtocolChoice

    with option_errors("protocol"):
        return ProtocolChoice.of("norm", {key: value for key, value in given.items() if value is not None}).config


def membership(config: Any, group: str, iface: str | None, node: int | None, *, receives: bool, **more: Any) -> "Membership":
    """Make the membership of a NORM node from options, and look where its session can be. UsageError names the option."""
    from experiments.session.membership import Membership
    from protocols.registry import protocol

    try:
        found = Membership(protocol("norm"), config, group, iface, node, **more)
        found.place(receives=receives)
    except UsageError as error:
        raise UsageError(f"--{error}") from error
    return found

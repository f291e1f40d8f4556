"""`mcastlab channel`: estimate a channel from a capture, and convert a channel to `tc` commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
import yaml
from pydantic import TypeAdapter, ValidationError

from experiments.channel.channel_fit import FitReport, fit_channels
from experiments.channel.loss_record import read_record
from experiments.commands.help import Command, Group
from experiments.commands.options import Brief, Columns, Json, Wide, scenarios_beginning
from experiments.output.budget import Column, Table
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from experiments.scenario.ready import ready_scenarios
from experiments.scenario.scenario import load
from experiments.scenario.validation_errors import complaint
from protocols.errors import ConfigError, UsageError, shown
from topologies.channel_file import write_channel
from topologies.channels import Channel, Loss
from topologies.input_file import read_text
from topologies.netem import Netem, netem_of
from topologies.spec import LinkSpec
from topologies.strict_yaml import parse_yaml

__all__ = ["channel", "fit", "show"]

channel = typer.Typer(
    cls=Group,
    add_completion=False,
    no_args_is_help=True,
    help="Estimate loss models from real links, and write them for the kernel.",
)

_LOSS: TypeAdapter[Channel] = TypeAdapter(Loss)
FORMS = ("recorded", "best", "bernoulli", "gilbert", "gilbert-elliott")


@channel.command("fit", cls=Command)
def fit(
    *,
    record: Annotated[
        Path,
        typer.Argument(
            metavar="CAPTURE|TRACE", help="pcap, pcapng, or a text file of 0 (received) and 1 (lost).", show_default=False
        ),
    ],
    source: Annotated[
        int | None, typer.Option(help="Source id of the NORM sender in a capture.", metavar="ID", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write a channel file for scenarios.", metavar="FILE", show_default=False)
    ] = None,
    form: Annotated[str, typer.Option("--as", help="Model to write.", metavar="|".join(FORMS))] = "recorded",
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Estimate loss models from a capture of NORM traffic, or from a trace, and write a channel."""
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _COLUMNS)
    if form not in FORMS:
        raise UsageError(f"--as: value {form!r} is not allowed; one of {', '.join(FORMS)}")
    read = read_record(record, source)
    fitted = fit_channels(read.fates)
    if out is not None:
        _write(out, _chosen(fitted, form), f"{read.origin}: {fitted.lost} of {counted(fitted.packets, 'packet')} lost")
    if as_json:
        typer.echo(json.dumps({"origin": read.origin} | fitted.plain()))
    else:
        _print(Printer(view), fitted, read.origin, out)
    return 0


def _chosen(fitted: FitReport, form: str) -> dict[str, Any]:
    if form == "recorded":
        data = fitted.recorded.model_dump()
        return {"model": data["model"], "runs": list(data["runs"])}
    model = fitted.best.model if form == "best" else form
    for candidate in fitted.fits:
        if candidate.model == model:
            return candidate.channel.model_dump()
    known = ", ".join(candidate.model for candidate in fitted.fits)
    raise UsageError(f"--as: value {form!r} is not allowed; this record gives only recorded, {known}")


def _write(out: Path, data: dict[str, Any], comment: str) -> None:
    try:
        write_channel(out, data, comment)
    except OSError as error:
        raise UsageError(f"--out: value {str(out)!r} is not allowed; a file that can be written ({error.strerror})") from error


_COLUMNS = (
    Column("model", rank=0),
    Column("parameter", rank=0),
    Column("estimate", rank=1, digits=4),
    Column("from", rank=3, digits=4),
    Column("to", rank=3, digits=4),
    Column("BIC", rank=2, form=".0f"),
    Column("burst fit", rank=4, digits=3),
    Column("gap fit", rank=4, digits=3),
)


def _print(printer: Printer, fitted: FitReport, origin: str, out: Path | None) -> None:
    lost = f"{origin}: {fitted.lost} of {counted(fitted.packets, 'packet')} lost in {counted(fitted.bursts, 'burst')}"
    if printer.view.brief:
        printer.verbatim(f"{lost}, best model: {fitted.best.model}")
        return
    printer.line(lost)
    if fitted.mean_burst is not None and fitted.mean_gap is not None:
        printer.line(f"mean burst {fitted.mean_burst:.4g}, mean gap {fitted.mean_gap:.4g} packets")
    rows: list[list[Any]] = []
    for fit_ in fitted.fits:
        name = fit_.model + (" (best)" if fit_ is fitted.best else "")
        for number, (parameter, value) in enumerate(fit_.parameters.items()):
            # What is known of the model as a whole stands beside its first parameter.
            whole: list[Any] = ["", "", ""] if number else [fit_.bic, fit_.burst_p, fit_.gap_p]
            rows.append(["" if number else name, parameter, value.value, value.low, value.high, *whole])
    printer.line()
    printer.table(Table(_COLUMNS, rows, note="from and to: 95 % interval; burst fit, gap fit: p of a chi-squared test"))
    if out is not None:
        printer.verbatim(f"written to {out}; in a scenario: loss: {{file: {out}}}")


@channel.command("show", cls=Command)
def show(
    *,
    what: Annotated[
        str,
        typer.Argument(
            metavar="CHANNEL|SCENARIO",
            help="A channel (1%, {model: ...}), its file, or a scenario.",
            show_default=False,
            autocompletion=scenarios_beginning,
        ),
    ],
    device: Annotated[str, typer.Option("--dev", help="Device in the commands.", metavar="DEV")] = "DEV",
    as_json: Json = False,
) -> int:
    """Print the `tc` commands for a channel, or for every link of a scenario.

    Exit code 0: success; 1: the kernel can't do some of it, which lines that begin with # name; 2: bad input.
    """
    rows = list(_rows(what, quote(device)))
    if as_json:
        plain = [{"link": name, "commands": n.commands, "notes": n.notes, "missing": n.missing} for name, n in rows]
        typer.echo(json.dumps(plain))
    else:
        for name, found in rows:
            for line in (f"# {name}", *found.commands, *(f"# {text}" for text in (*found.notes, *found.missing))):
                typer.echo(line)
    return 1 if any(found.missing for _, found in rows) else 0


def _rows(what: str, device: str) -> Iterator[tuple[str, Netem]]:
    if what in (ready := ready_scenarios()):
        what = str(ready[what].path)
    path, named = Path(what), _is_file(what)
    if named and "topology" in _mapping(path):
        topology = load(path).build_topology()
        for near, far, spec in topology.links:
            yield f"{near}-{far}", netem_of(spec, device)
        return
    loss = _channel({"file": what}, what) if named else _channel(_parsed(what), what)
    yield str(loss), netem_of(LinkSpec(loss=loss), device)


def _is_file(what: str) -> bool:
    try:
        return Path(what).is_file()
    except OSError:
        # Longer than a file's name can be.
        return False


def _mapping(path: Path) -> dict[str, Any]:
    try:
        data = parse_yaml(read_text(path))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return data if isinstance(data, dict) else {}


def _parsed(text: str) -> Any:
    wrong = ConfigError(f"channel: {text!r} is neither a file nor a channel like 1% or {{model: bernoulli, p: 1%}}")
    try:
        found = parse_yaml(text)
    except yaml.YAMLError as error:
        raise wrong from error
    if isinstance(found, str) and not found.lstrip(".")[:1].isdigit():
        # It names a file that is not there.
        raise wrong
    return found


def _channel(data: Any, origin: str) -> Channel:
    try:
        return _LOSS.validate_python(data)
    except ValidationError as error:
        raise ConfigError(f"channel {origin}: {complaint(error, data, _LOSS.json_schema())}") from error
    except UnicodeEncodeError as error:
        raise ConfigError(f"channel: value {shown(origin)} is not allowed; a name that UTF-8 can hold") from error

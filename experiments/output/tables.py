"""Show results as tables, side by side, and write them to a folder."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.output.safe_text import csv_row
from experiments.running.result import Result, Row
from experiments.scenario.scenario import Scenario
from protocols.errors import UsageError
from topologies.units import format_duration, format_rate

__all__ = ["compare", "prepare", "show", "summary", "working", "write"]

MOST_ROWS = 1000
_UNITS = {"units": "seconds, bytes, bytes per second; this is not a scenario file"}
WORLDS = {"sim": "simulator", "emu": "Mininet"}


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a spinner on stderr if it is a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(text):
            yield
    else:
        yield


def prepare(folder: Path) -> None:
    """Create the folder before the run, so that a wrong name fails early; UsageError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: value {str(folder)!r} is not allowed; a folder that can be made ({error.strerror})"
        ) from error


def write(result: Result, scenario: Scenario, folder: Path) -> None:
    """Write `result.json`, `scenario.json` (with all defaults) and `receivers.csv`."""
    (folder / "result.json").write_text(json.dumps(result.plain(), indent=2) + "\n", encoding="utf-8")
    (folder / "scenario.json").write_text(json.dumps(_UNITS | scenario.plain(), indent=2) + "\n", encoding="utf-8")
    with (folder / "receivers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [item.name for item in fields(Row)])
        writer.writeheader()
        writer.writerows(csv_row(asdict(row)) for row in result.receivers)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _nacks(sent: int | None, suppressed: int | None) -> str:
    return _count(sent) if suppressed is None else f"{_count(sent)} ({suppressed} suppressed)"


def summary(result: Result) -> dict[str, str]:
    """Return the metrics of the table by label."""
    m = result.metrics
    kinds = ", ".join(f"{name} {count}" for name, count in m["packets"].items() if name != "total")
    return {
        "complete receivers": f"{m['receivers_complete']} of {m['receivers']}",
        "content verified by": result.receivers[0].proof,
        "completion time": _seconds(m["completion_time"]),
        "goodput": "-" if m["goodput_mbit_s"] is None else f"{m['goodput_mbit_s']:.2f} Mbit/s",
        "loss": _percent(m["loss"]),
        "NACKs sent": _nacks(m["nacks_sent"], m["nacks_suppressed"]),
        "repairs": _count(m["repairs_sent"]),
        "repair effort": _storm(m.get("storm")),
        "packets": f"{m['packets']['total']} ({kinds})",
        "overhead": "-" if m["overhead"] is None else f"{m['overhead']:.3f}",
        "run ended after": _seconds(m["duration"]),
        "CPU time": _seconds(m["cpu_s"]),
        "memory": "-" if m["peak_memory"] is None else f"{m['peak_memory'] / 2**20:.0f} MiB (maximum per host)",
        "events": "-" if m["events"] is None else str(m["events"]),
        "emulation on time": _health(m.get("health")),
        "injected": ", ".join(f"{name} {count}" for name, count in m.get("injected", {}).items()) or "nothing",
        "violations": _violations(result),
        "faults": json.dumps(m["faults"]) if m["faults"] else "none",
        "fingerprint": result.fingerprint or "-",
    }


def _storm(storm: dict[str, Any] | None) -> str:
    """Format the metrics of feedback and repair."""
    if storm is None or storm["requests_per_loss"] is None:
        return "-"
    sent = f"each repair sent {storm['repair_multiplicity']:.2f} times"
    quiet = "no requests" if storm["time_to_quiet"] is None else f"quiet {storm['time_to_quiet']:.3f} s after the first request"
    return f"{storm['requests_per_loss']:.3g} requests per loss, {sent}, {_count(storm['duplicates'])} duplicates, {quiet}"


def _health(health: dict[str, Any] | None) -> str:
    """Format whether the links of an emulation were on time, and the lateness of those in user space."""
    if health is None:
        return "-"
    on_time = "yes" if health["healthy"] else "NO"
    if "lateness" not in health:
        return on_time
    late = {key: f"{value * 1000:.2f} ms" for key, value in health["lateness"].items()}
    return f"{on_time}; lateness of user-space links: median {late['p50']}, p99 {late['p99']}, maximum {late['max']}"


def _violations(result: Result) -> str:
    first = [f"{row['rule']}: {row['what']} ({row['host']} at {row['at']:.6g} s)" for row in result.violations[:3]]
    return f"{result.metrics['invariants']['broken']}, first " + "; ".join(first) if first else "none"


def compare(results: Sequence[Result], scenario: Scenario, titles: Sequence[str] = ()) -> None:
    """Print the metrics of several results side by side: worlds, or cases with the given `titles`."""
    name = scenario.name.removesuffix(f"-{titles[0]}") if titles else scenario.name
    table = Table(title=f"{name} (seed {scenario.seed})", title_justify="left")
    table.add_column("")
    columns = [summary(result) for result in results]
    for title in titles or [WORLDS[result.backend] for result in results]:
        table.add_column(title, overflow="fold")
    for key in columns[0]:
        table.add_row(key, *(column[key] for column in columns))
    _console().print(table)


def _console() -> Console:
    # A pipe has no width, and the default of 80 columns would truncate cells.
    console = Console()
    return console if console.is_terminal else Console(width=120)


def show(result: Result, scenario: Scenario, folder: Path | None) -> None:
    """Print one result: metrics, impaired links, and receivers unless there are too many."""
    compare([result], scenario)
    console = _console()
    for line in _links(result.metrics["impairments"]):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for line in _beside(result.metrics):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if len(result.receivers) > MOST_ROWS:
        where = f"in {folder / 'receivers.csv'}" if folder else "not shown; --out DIR writes them"
        console.print(f"rows of {len(result.receivers)} receivers: {where}")
        return
    console.print(_receivers(result.receivers))


def _beside(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line per node with a model and per flow of cross traffic."""
    for row in metrics.get("nodes", ()):
        filtered = f", {row['filtered']} stopped by storm control" if row["filtered"] else ""
        yield f"  {row['node']}: {row['offered']} packets, {row['dropped']} dropped by full queues{filtered}"
    for row in metrics.get("cross_traffic", ()):
        goodput = "-" if row["goodput_mbit_s"] is None else f"{row['goodput_mbit_s']:.2f} Mbit/s"
        yield f"  {row['kind']} {row['from']}-{row['to']}: {row['sent']} packets sent, {row['missing']:.1%} missing, {goodput}"


def _links(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line per kind of impairment with the links that have it and what implements it."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        ways = ", ".join(f"{key} {shown(row[key])}" for key, shown in _SHOWN.items() if row.get(key) is not None)
        doers = dict.fromkeys(str(value) for key, value in row.items() if key.endswith("_by"))
        alike.setdefault(f"{ways} by {', '.join(doers)}", []).append(row.get("link") or row["node"])
    for ways, links in alike.items():
        rest = f" and {len(links) - 3} more" if len(links) > 3 else ""
        yield f"  {', '.join(links[:3])}{rest}: {ways}"


def _loss(value: Any) -> str:
    if isinstance(value, dict):
        return _model(value)
    return value if isinstance(value, str) else f"{value * 100:.6g}%"


def _plain_or_model(plain: Callable[[Any], str]) -> Callable[[Any], str]:
    def shown(value: Any) -> str:
        return _model(value) if isinstance(value, dict) else plain(value)

    return shown


def _model(value: dict[str, Any]) -> str:
    return " ".join(f"{key} {item}" for key, item in value.items() if item is not None)


_SHOWN: dict[str, Callable[[Any], str]] = {
    "rate": format_rate,
    "queue": _plain_or_model(str),
    "delay": _plain_or_model(format_duration),
    "loss": _loss,
    "others": _model,
    "duplex": str,
    "trunk": str,
    "cpu": format_duration,
}


def _receivers(rows: Sequence[Row]) -> Table:
    table = Table()
    table.add_column("receiver")
    for name in ("objects", "bytes", "equal", "completed", "loss", "NACKs", "suppressed", "fault"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            str(row.objects),
            str(row.bytes),
            "yes" if row.equal else "NO",
            _seconds(row.completed_at),
            _percent(row.loss),
            _count(row.nacks_sent),
            _count(row.nacks_suppressed),
            row.fault or "",
        )
    return table

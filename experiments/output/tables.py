"""Show results as tables, side by side, and write them to a folder."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from experiments.output.budget import Column, Table, number, says_nothing
from experiments.output.condensed import MOST_ROWS, condensed
from experiments.output.counted import counted
from experiments.output.messages import MESSAGE_COLUMNS, message_tables
from experiments.output.node_errors import last_call
from experiments.output.printer import Printer
from experiments.output.receivers import RECEIVER_COLUMNS, receiver_tables
from experiments.output.safe_text import csv_row
from experiments.running.result import Result, Row
from experiments.scenario.scenario import Scenario
from experiments.workload.publish import PublishWorkload
from topologies.units import format_duration, format_rate

__all__ = ["RUN_COLUMNS", "WORLDS", "brief", "compare", "show", "summary", "write"]

_UNITS = {"units": "seconds, bytes, bytes per second; this is not a scenario file"}
_LATE = 0.2
"""Share of `linger` at the end of a run in which a delivery shows that more were to come."""
WORLDS = {"sim": "simulator", "emu": "Mininet"}
_NODE = (
    Column("node", rank=0),
    Column("packets", rank=3),
    Column("dropped by full queues", rank=1),
    Column("stopped by storm control", rank=2),
)
_FLOW = (
    Column("cross traffic", rank=0),
    Column("kind", rank=3),
    Column("packets", rank=4),
    Column("missing", "%", rank=2, form=".1f"),
    Column("goodput", "Mbit/s", rank=1, form=".2f"),
)
RUN_COLUMNS = (*RECEIVER_COLUMNS, *MESSAGE_COLUMNS, *(column.name for column in (*_NODE, *_FLOW)))
"""Names of the columns of the tables of a single run."""


def write(result: Result, scenario: Scenario, folder: Path) -> None:
    """Write `result.json`, `scenario.json` (with all defaults) and `receivers.csv`."""
    (folder / "result.json").write_text(json.dumps(result.plain(), indent=2) + "\n", encoding="utf-8")
    (folder / "scenario.json").write_text(json.dumps(_UNITS | scenario.plain(), indent=2) + "\n", encoding="utf-8")
    with (folder / "receivers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [item.name for item in fields(Row)])
        writer.writeheader()
        writer.writerows(csv_row(asdict(row)) for row in result.receivers)


def _fixed(value: float | None, digits: int, factor: float = 1.0) -> str | None:
    return None if value is None else f"{value * factor:.{digits}f}"


def summary(result: Result) -> dict[str, str | None]:
    """Return the metrics of the table by label, which has the unit; None where the run has no value."""
    m = result.metrics
    storm = m.get("storm") or {}
    effort = storm if storm.get("requests_per_loss") is not None else {}
    memory = m["peak_memory"]
    return {
        "complete receivers": f"{m['receivers_complete']} of {m['receivers']}",
        "content verified by": result.receivers[0].proof,
        "completion time [s]": _fixed(m["completion_time"], 3),
        "goodput [Mbit/s]": _fixed(m["goodput_mbit_s"], 2),
        "loss [%]": _fixed(m["loss"], 2, 100),
        "NACKs sent": _count(m["nacks_sent"]),
        "NACKs suppressed": _count(m["nacks_suppressed"]),
        "repairs": _count(m["repairs_sent"]),
        "requests per loss": f"{effort['requests_per_loss']:.3g}" if effort else None,
        "copies of each repair": _fixed(effort.get("repair_multiplicity"), 2),
        "duplicates": _count(effort.get("duplicates")),
        "quiet after first request [s]": _fixed(effort.get("time_to_quiet"), 3),
        **_messages(m.get("messages")),
        "packets": _count(m["packets"]["total"]),
        **{f"packets: {kind}": str(count) for kind, count in m["packets"].items() if kind != "total"},
        "bytes sent / content": _fixed(m["overhead"], 3),
        "run ended after [s]": _fixed(m["duration"], 3),
        "CPU time [s]": _fixed(m["cpu_s"], 3),
        "memory of largest host [MiB]": _fixed(memory, 0, 2**-20),
        "events": _count(m["events"]),
        **_health(m.get("health")),
        "limited by a busy core": ", ".join(m.get("cpu_bound", ())) or None,
        **{f"processor of {row['host']} busy [s]": _fixed(row["busy"], 3) for row in m.get("processors", ())},
        **{f"injected: {kind}": str(count) for kind, count in m.get("injected", {}).items()},
    }


def _messages(m: dict[str, Any] | None) -> dict[str, str | None]:
    """Return the metrics of messages by label."""
    if m is None:
        return {}
    return {
        "messages published": _count(m["published"]),
        "messages due, in all subscriptions": _count(m["due"]),
        **{f"messages {key}": _count(m[key]) for key in ("promised", "delivered", "lost", "missing", "expired", "repeated")},
        "latency, p50 [ms]": _fixed(m["latency_p50"], 3, 1000),
        "latency, p99 [ms]": _fixed(m["latency_p99"], 3, 1000),
    }


def _count(value: float | None) -> str | None:
    return None if value is None else number(value)


def _health(health: dict[str, Any] | None) -> dict[str, str | None]:
    """Return whether the links of an emulation were on time, and the lateness of those in user space."""
    if health is None:
        return {}
    late = health.get("lateness", {})
    names = {"p50": "median", "p99": "p99", "max": "maximum"}
    return {
        "emulation on time": "yes" if health["healthy"] else "NO",
        **{f"lateness of links, {name} [ms]": _fixed(late.get(key), 2, 1000) for key, name in names.items()},
    }


def brief(results: Mapping[str, Result]) -> str:
    """Return one line about the results of a run, by case or world ("" for a single one)."""
    whole = [result.ok for result in results.values()]
    first = next(iter(results.values()))
    if len(whole) > 1:
        name = first.scenario.removesuffix(f"-{next(iter(results))}")
        failed = [case for case, result in results.items() if not result.ok]
        named = f"incomplete: {', '.join(failed)}" if failed else ", ".join(results)
        return f"{name} (seed {first.seed}): {sum(whole)} of {len(whole)} complete{';' if failed else ':'} {named}"
    m = first.metrics
    told = [f"{m['receivers_complete']} of {m['receivers']} complete"]
    if m["completion_time"] is not None:
        told[0] += f" in {m['completion_time']:.3f} s"
    if m["goodput_mbit_s"] is not None:
        told.append(f"{m['goodput_mbit_s']:.2f} Mbit/s")
    told += [] if m["loss"] is None else [f"loss {m['loss'] * 100:.2f} %"]
    told += [counted(m[key], name) for key, name in (("nacks_sent", "NACK"), ("repairs_sent", "repair")) if m[key] is not None]
    told += [counted(m["invariants"]["broken"], "violation")] if first.violations else []
    failed = [name for name, fault in m["faults"].items() if "error" in fault]
    told += [f"failed: {', '.join(failed)}"] if failed else []
    return f"{first.scenario} (seed {first.seed}): {', '.join(told)}"


def show(printer: Printer, result: Result, scenario: Scenario, folder: Path | None) -> None:
    """Print one result: metrics, impaired links, nodes, cross traffic, and receivers, of many the worst."""
    compare(printer, [result], scenario)
    for line in _links(result.metrics["impairments"]):
        printer.line(line, indent=2)
    for table in (*_beside(result.metrics), *receiver_tables(result.receivers), *message_tables(result.messages)):
        printer.line()
        printer.table(table)
    if len(result.receivers) > MOST_ROWS:
        where = f"in {folder / 'receivers.csv'}" if folder else "written by --out DIR"
        printer.line(f"rows of {len(result.receivers)} receivers: {where}")


def compare(printer: Printer, results: Sequence[Result], scenario: Scenario, titles: Sequence[str] = ()) -> None:
    """Print the metrics of several results side by side: worlds, or cases with the given `titles`."""
    name = scenario.name.removesuffix(f"-{titles[0]}") if titles else scenario.name
    names = titles or [WORLDS[result.backend] for result in results]
    columns = list(map(summary, results))
    if len(results) == 1:
        columns = [_joined(columns[0])]
    labels = dict.fromkeys(label for column in columns for label in column)
    rows = [[label, *(column.get(label) for column in columns)] for label in labels]
    printer.table(
        Table(
            [Column("", rank=0), *(Column(name, rank=rank, right=len(results) > 1) for rank, name in enumerate(names, 1))],
            [row for row in rows if not says_nothing(row[1:])],
            f"{name} (seed {scenario.seed})",
        )
    )
    for title, result in zip(names, results, strict=True):
        for line in (*_facts(result), *_early_end(result, scenario)):
            printer.line(f"  {line}" if len(results) == 1 else f"  {title}: {line}", indent=2)


def _joined(rows: dict[str, str | None]) -> dict[str, str | None]:
    """Return the rows of a single result with the packets of all kinds in one row."""
    kinds = {label.removeprefix("packets: "): text for label, text in rows.items() if label.startswith("packets: ")}
    shown: dict[str, str | None] = {}
    for label, text in rows.items():
        if label == "packets":
            shown |= {label: text, "packets by kind": ", ".join(f"{kind} {count}" for kind, count in kinds.items())}
        elif not label.startswith("packets: "):
            shown[label] = text
    return shown


def _facts(result: Result) -> Iterator[str]:
    """Yield what is too long for a column: violations, faults, the fingerprint."""
    first = [f"{row['rule']}: {row['what']} ({row['host']} at {row['at']:.6g} s)" for row in result.violations[:3]]
    if first:
        yield f"violations: {result.metrics['invariants']['broken']}, first {'; '.join(first)}"
    if result.metrics["faults"]:
        hosts = result.metrics["faults"].items()
        yield f"faults: {json.dumps({host: _in_a_line(faults) for host, faults in hosts})}"
    if result.messages is None and any("duplicate" in row.get("others", ()) for row in result.metrics["impairments"]):
        yield "loss is as the receivers count it, too low here: each late copy of a duplicated packet makes up for a lost one"
    if result.fingerprint:
        yield f"fingerprint {result.fingerprint}"


def _in_a_line(faults: dict[str, Any]) -> dict[str, Any]:
    """Return the faults of a host, with the error that ended its program in a line."""
    return {**faults, "error": last_call(faults["error"])} if "error" in faults else faults


def _early_end(result: Result, scenario: Scenario) -> Iterator[str]:
    """Yield a line if messages are missing that were still being delivered when the run ended by `linger`."""
    linger = max((work.linger for work in scenario.workload if isinstance(work, PublishWorkload)), default=0.0)
    end = result.metrics["duration"]
    rows = () if result.messages is None else result.messages["subscriptions"]
    late = [row for row in rows if row["missing"] and row["last_at"] is not None and row["last_at"] > end - _LATE * linger]
    if late and end < scenario.duration:
        yield (
            f"the run ended {format_duration(linger)} after the last publisher was done, while messages were still delivered; "
            "a longer linger in the workload waits for them"
        )


def _beside(metrics: Mapping[str, Any]) -> Iterator[Table]:
    """Yield tables of the nodes with a model and of the flows of cross traffic."""
    nodes = [[row["node"], row["offered"], row["dropped"], row.get("filtered") or None] for row in metrics.get("nodes", ())]
    if nodes:
        yield from condensed(Table(_NODE, nodes), lambda row: row[2], "nodes")
    flows = [
        [f"{row['from']}-{row['to']}", row["kind"], row["sent"], row["missing"] * 100, row["goodput_mbit_s"]]
        for row in metrics.get("cross_traffic", ())
    ]
    if flows:
        yield from condensed(Table(_FLOW, flows), lambda row: row[3], "flows")


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

"""Render the report of one run as a self-contained HTML page: replay, loss map, rates, sequence diagram, tables, provenance."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from experiments.captures.trace_file import open_trace
from experiments.drawing.ladder import draw_ladder
from experiments.drawing.ladder_excerpt import cut
from experiments.drawing.svg import page_rules
from experiments.output.tables import WORLDS, summary
from experiments.report.page_skeleton import Section, asset, command_line, render
from experiments.report.replay import kind_styles, replay_data
from experiments.report.run_report_captures import MOST_DATAGRAMS, CapturedRun
from experiments.report.run_report_folder import MOST_HOSTS, WORST, RunFolder
from experiments.report.run_report_recording import MOST_COPIES, MOST_PACKETS, RunRecording, Window
from experiments.report.run_report_routes import Routes
from experiments.running.result import Row
from protocols.errors import UsageError

__all__ = ["RunReport", "gather", "run_page"]

MOST_ROWS = 1_000
"""Largest number of receivers in the table."""
_COLUMNS = (
    "receiver",
    "complete",
    "completed [s]",
    "loss [%]",
    "NACKs",
    "suppressed",
    "objects twice",
    "objects",
    "bytes",
    "fault",
)
_KEY_FACTS = ("completion time", "goodput", "loss", "NACKs sent", "repairs", "overhead")
_SAYS_NOTHING: tuple[str | None, ...] = (None, "-", "none", "nothing")
_MOST_FILES = 8


@dataclass(frozen=True)
class RunReport:
    """Data of the page: the recording, hosts of which nothing was recorded, and notes on what is left out."""

    recording: RunRecording
    source: str
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def gather(folder: RunFolder, window: Window, hosts: Sequence[str] = ()) -> RunReport:
    """Read the trace of a run, or else its captures. UsageError if it has neither, or none of the `hosts`."""
    if folder.trace is not None:
        return _traced(folder, folder.trace, window, hosts)
    if folder.captures:
        return _captured(folder, window, hosts)
    record = "--capture hosts" if folder.result.backend == "emu" else "--set trace=true"
    world = " --on emu" if folder.result.backend == "emu" else ""
    raise UsageError(
        f"{folder.path}: has neither a trace nor captures, so there is nothing to replay; record them: "
        f"mcastlab run SCENARIO.yaml{world} --out {shlex.quote(str(folder.path))} {record}"
    )


def _traced(folder: RunFolder, trace: Path, window: Window, hosts: Sequence[str]) -> RunReport:
    with open_trace(trace) as (about, _):
        known = [str(name) for name in about["hosts"]]
    shown = folder.shown(known, hosts)
    recording = RunRecording(folder, about, shown, window)
    with open_trace(trace, recording.receptions_of) as (_, rows):
        recording.add(rows)
    notes = [*_limits(recording)]
    if len(known) < len(folder.topology.hosts):
        notes.append(f"The trace has {len(known)} of {len(folder.topology.hosts):,} hosts.")
    return RunReport(recording, "trace", notes=notes)


def _captured(folder: RunFolder, window: Window, hosts: Sequence[str]) -> RunReport:
    captured = CapturedRun(folder, Routes(folder.topology))
    shown = folder.shown(captured.hosts, hosts)
    unknown = [] if hosts else [name for name in folder.shown(folder.topology.hosts, ()) if name not in captured.hosts]
    recording = RunRecording(folder, captured.about, [*shown, *unknown], window, frozenset(captured.hidden))
    recording.add(captured.rows())
    notes = [*_limits(recording)]
    if unknown:
        more = f"{', '.join(unknown[:6])}{' and others' if len(unknown) > 6 else ''}"
        notes.append(f"Not captured, so what they received is not known: {more}. All hosts: --capture hosts.")
    if captured.hidden:
        notes.append(
            "The kernel lost packets behind the point of capture (loss_by: cbpf), so these losses are in no capture; "
            "with --set emu.losses=keyed they are lost before it."
        )
    if captured.read_until is not None:
        notes.append(f"Of the captures the first {MOST_DATAGRAMS:,} datagrams were read, up to {captured.read_until:.3f} s.")
    notes.append(
        "Captures don't tell on which link a packet was lost: drawn is the first behind which no captured host has it, "
        "or the last before the receiver."
    )
    return RunReport(recording, "captures", unknown, notes)


def _limits(recording: RunRecording) -> Iterator[str]:
    """Yield what the replay leaves out of the run."""
    folder, known = recording.folder, recording.known
    shown = [name for name in recording.shown if name in recording.hosts]
    if len(shown) < len(known):
        what = f"{len(shown)} of {len(known):,} hosts"
        if len(known) > MOST_HOSTS:
            what += f": the senders and the {WORST} receivers that lost most. Others: --hosts"
        yield f"Shown are {what}."
    begin, end = recording.window.begin, recording.trace.end
    part = f"The replay shows {begin:.4g} s to {end:.4g} s of {folder.duration:.4g} s"
    if recording.kept_until is not None:
        limit = f"{MOST_PACKETS:,} packets or {MOST_COPIES:,} copies of them"
        yield f"{part} (at most {limit}); another part: --from and --to."
    elif begin > 0 or end < folder.duration:
        yield f"{part}, as chosen with --from and --to."
    whole = recording.kept_until is None and begin == 0 and end >= folder.duration and len(shown) == len(known)
    if recording.not_arrived and not whole:
        yield "Packets that did not arrive although no link lost them are counted for shown hosts in the replayed part only."


# -- the page --------------------------------------------------------------------------------------------------------------


def run_page(report: RunReport, command: str) -> str:
    """Render the page; `command` is what made it."""
    result = report.recording.folder.result
    scripts = [*map(asset, ("page.js", "run_report.js", "replay.js"))]
    style = f"{page_rules()}\n{asset('run_report.css')}"
    title = f"{result.scenario} (seed {result.seed})"
    return render(title, _lead(report), _sections(report), _data(report), scripts, command, style)


def _data(report: RunReport) -> dict[str, Any]:
    recording = report.recording
    styles = kind_styles(recording.kinds(), recording.feedback)
    counts = recording.counts
    kinds = [{**each.plain(), "packets": counts.packets[each.name], "bytes": counts.octets[each.name]} for each in styles]
    return {
        "replay": replay_data(recording, styles, report.unknown),
        "losses": recording.losses.plain() if recording.losses.rows else None,
        "rates": {"interval": counts.interval, "count": counts.count, "kinds": kinds},
        "tables": [_receivers(recording.folder)],
    }


def _lead(report: RunReport) -> str:
    folder = report.recording.folder
    result, metrics = folder.result, folder.result.metrics
    complete, receivers = metrics["receivers_complete"], metrics["receivers"]
    if result.ok:
        tag = '<span class="tag">complete</span>'
    else:
        tag = f'<span class="tag bad">{"violations" if result.completed else f"{receivers - complete:,} incomplete"}</span>'
    protocol = escape(str(folder.scenario["protocol"].get("name", "")))
    world = f"{'the ' if result.backend == 'sim' else ''}{WORLDS[result.backend]}"
    text = f"{complete:,} of {receivers:,} receivers have everything; {protocol} in {world}, from its {report.source}"
    shown = _metrics(folder)
    keys = {name: shown[name] for name in _KEY_FACTS if name in shown}
    return f'<p class="lead">{tag}{text}</p>{_facts(keys, "facts keys")}'


def _facts(facts: Mapping[str, str], style: str = "facts") -> str:
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="{style}">{rows}</dl>'


def _sections(report: RunReport) -> Iterator[Section]:
    folder = report.recording.folder
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    yield Section("replay", "Replay", f'<div class="card" id="stage"></div><div class="notes">{notes}</div>')
    yield Section("losses", "Who lost what", _losses(report))
    rates = '<div class="card"><p id="rates-told"></p><div id="rates-rows"></div></div>'
    yield Section("rates", "Rates over time", rates)
    ladder = _ladder(report)
    if ladder:
        yield Section("ladder", "Sequence diagram", ladder)
    yield Section("receivers", "Receivers", f'<div class="card tall">{_left_out(folder)}<div id="table-receivers"></div></div>')
    yield Section("metrics", "Metrics", f'<div class="card">{_facts(_metrics(folder))}</div>')
    yield Section("provenance", "Provenance", _provenance(folder))


def _metrics(folder: RunFolder) -> dict[str, str]:
    """Return the metrics of the run's table that say something."""
    return {name: str(value) for name, value in summary(folder.result).items() if value not in _SAYS_NOTHING}


def _losses(report: RunReport) -> str:
    if not report.recording.losses.rows:
        return '<div class="card"><p>No capture shows what receivers lost; see the notes on the replay.</p></div>'
    return (
        '<div class="card"><div class="bar" id="losses-choice"></div><p id="losses-told"></p><div id="losses-rows"></div></div>'
    )


def _ladder(report: RunReport) -> str:
    trace = report.recording.trace
    if not trace.packets:
        return ""
    excerpt = cut(trace)
    drawing = draw_ladder(excerpt, f"{excerpt.begin:.4f} s to {excerpt.end:.4f} s").svg()
    about = "The first loss and its repair in the replayed part; mcastlab ladder draws any other part of a trace."
    frame = f'<div class="figure scroll" tabindex="0" role="region" aria-label="sequence diagram">{drawing}</div>'
    return f'<div class="card"><p>{about}</p>{frame}</div>'


def _left_out(folder: RunFolder) -> str:
    count = len(folder.result.receivers)
    return f"<p>The {MOST_ROWS:,} that lost most; receivers.csv has all {count:,}.</p>" if count > MOST_ROWS else ""


def _receivers(folder: RunFolder) -> dict[str, Any]:
    """Return the table of the receivers, of many those that lost most."""
    rows = folder.worst()[:MOST_ROWS] if len(folder.result.receivers) > MOST_ROWS else folder.result.receivers
    return {"name": "receivers", "columns": _COLUMNS, "rows": [_cells(row) for row in rows], "long": ["fault"]}


def _cells(row: Row) -> list[Any]:
    counts = (row.nacks_sent, row.nacks_suppressed, row.duplicates, row.objects, row.bytes)
    return [
        row.name,
        "yes" if row.equal else "no",
        row.completed_at,
        None if row.loss is None else round(100 * row.loss, 4),
        *counts,
        row.fault,
    ]


def _provenance(folder: RunFolder) -> str:
    result = folder.result
    written = datetime.fromtimestamp((folder.path / "result.json").stat().st_mtime, UTC)
    recorded = [folder.trace] if folder.trace else folder.captures
    sizes = [f"{path.relative_to(folder.path)} ({path.stat().st_size / 1e6:.1f} MB)" for path in recorded[:_MOST_FILES]]
    more = [f"{len(recorded) - _MOST_FILES} more"] if len(recorded) > _MOST_FILES else []
    facts = {
        "scenario": result.scenario,
        "seed": str(result.seed),
        "world": WORLDS[result.backend],
        "written": f"{written:%Y-%m-%d %H:%M} UTC",
        "digest of the scenario": result.digest,
        "fingerprint": result.fingerprint or "",
        "recorded in": ", ".join([*sizes, *more]),
    }
    shown = _facts({name: value for name, value in facts.items() if value})
    again = f"mcastlab report {shlex.quote(str(folder.path))} --from TIME --to TIME --hosts A,B"
    text = escape(json.dumps(folder.scenario, indent=2))
    whole = f"<details><summary>scenario.json, with all defaults</summary><pre>{text}</pre></details>"
    return f'<div class="card">{shown}<p>Another part of the run, or other hosts:</p>{command_line(again)}{whole}</div>'

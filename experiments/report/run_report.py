"""Render the report of one run as a self-contained HTML page: replay, loss map, rates, sequence diagram, tables, provenance."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from experiments.captures.trace_file import open_trace
from experiments.drawing.ladder import draw_ladder
from experiments.drawing.ladder_excerpt import cut
from experiments.drawing.svg import page_rules
from experiments.output.tables import WORLDS, summary
from experiments.report.replay import feedback_kinds, kind_styles, replay_data
from experiments.report.run_report_captures import MOST_DATAGRAMS, CapturedRun
from experiments.report.run_report_folder import MOST_HOSTS, WORST, RunFolder
from experiments.report.run_report_recording import MOST_COPIES, MOST_PACKETS, RunRecording, Window
from experiments.report.run_report_routes import Routes
from experiments.running.result import Row
from protocols.errors import UsageError

__all__ = ["RunReport", "gather", "run_page"]

ASSETS = files("experiments.report") / "assets"
_MOST_ROWS = 50
_COLUMNS = ("receiver", "complete", "completed [s]", "loss", "NACKs", "suppressed", "duplicates", "objects", "bytes", "fault")
_STYLES = ("page.css", "run_report.css")
_SCRIPTS = ("run_report.js", "replay.js")


@dataclass(frozen=True)
class RunReport:
    """What the page shows: the recording, hosts of which nothing was recorded, and notes on what is left out."""

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
        f"mcastlab run SCENARIO.yaml{world} --out {folder.path} {record}"
    )


def _traced(folder: RunFolder, trace: Path, window: Window, hosts: Sequence[str]) -> RunReport:
    with open_trace(trace) as (about, _):
        known = [str(name) for name in about["hosts"]]
    shown = folder.shown(known, hosts)
    with open_trace(trace, frozenset(shown)) as (about, rows):
        recording = RunRecording(folder, about, shown, window)
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


# -- the page --------------------------------------------------------------------------------------------------------------


def run_page(report: RunReport, command: str) -> str:
    """Render the page; `command` is what made it."""
    sections = [*_sections(report)]
    links = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title, _ in sections)
    body = "\n".join(f'<section id="{name}"><h2>{escape(title)}</h2>\n{inner}\n</section>' for name, title, inner in sections)
    result = report.recording.folder.result
    return Template(_asset("run_report.html")).substitute(
        title=escape(f"{result.scenario} (seed {result.seed})"),
        lead=_lead(report),
        links=links,
        body=body,
        command=escape(command),
        style="\n".join([*map(_asset, _STYLES), page_rules()]),
        # Escape "</", which would end the script element.
        data=json.dumps(_data(report), allow_nan=False, separators=(",", ":")).replace("</", "<\\/"),
        script="\n".join(map(_asset, _SCRIPTS)),
    )


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _data(report: RunReport) -> dict[str, Any]:
    recording = report.recording
    styles = kind_styles(recording.kinds(), feedback_kinds(recording))
    counts = recording.counts
    return {
        "duration": recording.folder.duration,
        "replay": replay_data(recording, styles, report.unknown),
        "losses": recording.losses.plain() if recording.losses.rows else None,
        "rates": {
            "interval": counts.interval,
            "count": counts.count,
            "kinds": [
                {**style.plain(), "packets": counts.packets[style.name], "bytes": counts.octets[style.name]} for style in styles
            ],
        },
    }


def _lead(report: RunReport) -> str:
    folder = report.recording.folder
    result, metrics = folder.result, folder.result.metrics
    complete, receivers = metrics["receivers_complete"], metrics["receivers"]
    if result.ok:
        tag = '<span class="tag">complete</span>'
    else:
        tag = f'<span class="tag bad">{"violations" if result.completed else f"{receivers - complete} incomplete"}</span>'
    protocol = escape(str(folder.scenario["protocol"].get("name", "")))
    world = f"{'the ' if result.backend == 'sim' else ''}{WORLDS[result.backend]}"
    text = f"{complete:,} of {receivers:,} receivers have everything; {protocol} in {world}, from its {report.source}"
    return f'<p class="lead">{tag}{text}</p>{_facts(_key_facts(folder))}'


def _key_facts(folder: RunFolder) -> dict[str, str]:
    shown = summary(folder.result)
    names = ("completion time", "goodput", "loss", "NACKs sent", "repairs", "overhead")
    return {name: shown[name] for name in names if shown.get(name, "-") != "-"}


def _facts(facts: Mapping[str, str], style: str = "facts keys") -> str:
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="{style}">{rows}</dl>'


def _sections(report: RunReport) -> Iterator[tuple[str, str, str]]:
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    yield "replay", "Replay", f'<div class="card" id="stage"></div><div class="notes">{notes}</div>'
    yield "losses", "Who lost what", _loss_section(report)
    rates = '<div class="card"><p id="rates-told"></p><div id="rates-rows"></div></div>'
    yield "rates", "Rates over time", rates
    ladder = _ladder(report)
    if ladder:
        yield "ladder", "Sequence diagram", ladder
    yield "receivers", "Receivers", _receivers(report.recording.folder)
    yield "metrics", "Metrics", f'<div class="card">{_facts(_metrics(report.recording.folder), "facts")}</div>'
    yield "provenance", "Provenance", _provenance(report.recording.folder)


def _loss_section(report: RunReport) -> str:
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
    again = "The first loss and its repair in the replayed part; mcastlab ladder draws any other part of a trace."
    frame = f'<div class="figure" tabindex="0" role="region" aria-label="sequence diagram">{drawing}</div>'
    return f'<div class="card"><p>{again}</p>{frame}</div>'


def _receivers(folder: RunFolder) -> str:
    rows = folder.worst()[:_MOST_ROWS] if len(folder.result.receivers) > _MOST_ROWS else folder.result.receivers
    head = "".join(f"<th{_words(place)}>{escape(name)}</th>" for place, name in enumerate(_COLUMNS))
    body = "".join(f"<tr>{''.join(_cells(row))}</tr>" for row in rows)
    left = len(folder.result.receivers) - len(rows)
    more = f"<p>The {len(rows)} that lost most; all {len(folder.result.receivers):,} are in receivers.csv.</p>" if left else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="card tall">{more}<div class="scroll" tabindex="0">{table}</div></div>'


def _words(place: int) -> str:
    return ' class="words"' if place in (0, len(_COLUMNS) - 1) else ""


def _cells(row: Row) -> Iterable[str]:
    done = "-" if row.completed_at is None else f"{row.completed_at:.4f}"
    values = (row.name, "yes" if row.equal else "no", done, f"{row.loss:.2%}", row.nacks_sent, row.nacks_suppressed)
    for place, value in enumerate((*values, row.duplicates, row.objects, f"{row.bytes:,}", row.fault or "")):
        yield f"<td{_words(place)}>{escape(str(value))}</td>"


def _metrics(folder: RunFolder) -> dict[str, str]:
    return {name: value for name, value in summary(folder.result).items() if value not in ("-", "none", "nothing")}


def _provenance(folder: RunFolder) -> str:
    result = folder.result
    written = datetime.fromtimestamp((folder.path / "result.json").stat().st_mtime, UTC)
    recorded = [folder.trace] if folder.trace else folder.captures
    facts = {
        "scenario": result.scenario,
        "seed": str(result.seed),
        "world": WORLDS[result.backend],
        "written": f"{written:%Y-%m-%d %H:%M} UTC",
        "digest of the scenario": result.digest,
        "fingerprint": result.fingerprint or "",
        "recorded in": ", ".join(
            f"{path.relative_to(folder.path)} ({path.stat().st_size / 1e6:.1f} MB)" for path in recorded[:8]
        )
        + (f" and {len(recorded) - 8} more" if len(recorded) > 8 else ""),
    }
    text = json.dumps(folder.scenario, indent=2)
    shown = _facts({name: value for name, value in facts.items() if value}, "facts")
    whole = f"<details><summary>scenario.json, with all defaults</summary><pre>{escape(text)}</pre></details>"
    return f'<div class="card">{shown}{whole}</div>'

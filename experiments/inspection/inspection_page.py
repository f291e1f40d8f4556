"""Render the inspection of a capture as one self-contained HTML page."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from experiments.inspection.charts import ladder_svg, timeline_svg
from experiments.inspection.findings import CaptureFinding
from experiments.inspection.inspection import Inspection
from experiments.inspection.inspection_tables import overview
from experiments.inspection.request_excerpt import node_name

__all__ = ["inspection_page"]

_ROWS = 200
_SENDERS = 100
_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; margin: 2em auto; max-width: 1100px;
  padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; margin-top: 2em }
table { border-collapse: collapse; margin: .7em 0; font-size: .92em }
th, td { padding: .25em .7em; text-align: left; border-bottom: 1px solid #8884; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
.bad { color: light-dark(#b91c1c, #ff8585); font-weight: 600 }
.figure { overflow-x: auto }
p.soft { opacity: .75 }
"""
_OBJECT = ("id", "kind", "size", "info", "blocks_seen", "blocks_decodable", "sources", "parity", "repairs", "open_requests")
_RECEIVER = ("nacks", "acks", "symbols_asked", "segments_lost", "loss", "nacks_covered", "rounds_suppressed", "rounds_silent")
_REQUEST = ("packet", "time", "receiver", "sender", "what", "symbols", "new")
_UNITS = {"size": "B", **dict.fromkeys(("first", "last", "time", "grtt", "answer_after"), "s")}
_ROUND = ("packet", "time", "askers", "suppressed", "silent", "segments", "repairs", "unneeded", "answer_after")

_STATE = (
    "time",
    "grtt",
    "says_rate_bps",
    "sent_rate_bps",
    "data",
    "repairs",
    "nacks",
    "clr",
    "clr_rtt",
    "clr_loss",
    "clr_flags",
)
_MARK = ("packet", "time", "names", "flushes", "asked", "acked", "missing")


def inspection_page(found: Inspection) -> str:
    """Render the page: summary, findings, tables, message counts over time, and a sequence diagram."""
    plain = found.plain()
    name = escape(found.path.name)
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{name}</h1>",
        *(f"<p>{escape(line)}</p>" for line in overview(found)),
        "<p>Times are seconds since the first NORM message.</p>",
        "<h2>Violations and notices</h2>",
        *_findings(found),
        "<h2>Packets over time</h2>",
        f'<div class="figure">{timeline_svg(found.session.timeline)}</div>',
        *(part for sender in plain["senders"][:_SENDERS] for part in _sender(sender)),
        *_more_senders(plain["senders"]),
        *_receivers(plain["receivers"]),
        *_requests(plain["requests"], plain["requests_more"]),
        *_ladder(found),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _findings(found: Inspection) -> Iterable[str]:
    findings = found.session.findings
    if not findings.violations:
        yield "<p>No violations of the protocol.</p>"
    for row in findings.violations:
        yield from _finding(row, "bad")
    for row in findings.notices:
        yield from _finding(row, "")


def _finding(row: CaptureFinding, style: str) -> Iterable[str]:
    yield f'<p><span class="{style}">{escape(row.rule)}</span>, {row.count} times: {escape(row.about)}</p><ul>'
    for packet, time, what in row.first:
        yield f"<li>packet {packet}, {time:.6f} s: {escape(what)}</li>"
    yield "</ul>"


def _sender(sender: Mapping[str, Any]) -> Iterable[str]:
    yield f"<h2>Sender {node_name(sender['source_id'])}, instance {sender['instance']}</h2>"
    shown = ("addresses", "to", "first", "last", "packets", "rate_bps", "says_rate_bps", "grtt", "backoff", "group_size")
    yield _facts({key: sender[key] for key in (*shown, "missing", "late", "duplicates")})
    yield "<p>Repairs</p>" + _facts(sender["repairs"])
    yield "<p>Suppression</p>" + _facts(sender["suppression"])
    if sender["objects"]:
        yield "<p>Objects</p>" + _table(_OBJECT, sender["objects"], sender["objects_more"])
    if sender["states"]:
        yield "<p>State from probe to probe</p>" + _table(_STATE, sender["states"])
    if sender["watermarks"]:
        yield "<p>Watermarks</p>" + _table(_MARK, sender["watermarks"])
    if sender["rounds"]:
        yield "<p>Repair rounds, each until the first request after a repair</p>" + _table(_ROUND, sender["rounds"])


def _more_senders(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    if len(rows) > _SENDERS:
        yield f"<p>and {len(rows) - _SENDERS} more senders</p>"


def _receivers(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    if rows:
        named = [dict(row) | {"node": node_name(row["node"]), "loss": _share(row["loss"])} for row in rows]
        yield "<h2>Receivers that send feedback</h2>" + _table(("node", "addresses", *_RECEIVER), named)


def _share(loss: float | None) -> str | None:
    return None if loss is None else f"{loss:.2%}"


def _requests(rows: Sequence[Mapping[str, Any]], more: int) -> Iterable[str]:
    if rows:
        yield "<h2>Requests</h2>" + _table(_REQUEST, rows, more)


def _ladder(found: Inspection) -> Iterable[str]:
    drawing = ladder_svg(found)
    if drawing:
        yield "<h2>Around the first request</h2>"
        where = "The column in the middle is the capture point; times are capture times."
        yield f'<p class="soft">{where}</p>'
        yield f'<div class="figure">{drawing}</div>'


def _facts(facts: Mapping[str, Any]) -> str:
    rows = "".join(f"<tr><th>{escape(_words(key))}</th><td>{escape(_text(value))}</td></tr>" for key, value in facts.items())
    return f"<table>{rows}</table>"


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], beyond: int = 0) -> str:
    """Render the first rows; `beyond` counts rows missing from `rows`."""
    head = "".join(f"<th>{escape(_words(name))}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(_cell(row[name]) for name in columns)}</tr>" for row in rows[:_ROWS])
    left = max(len(rows) - _ROWS, 0) + beyond
    more = f"<p>and {left} more</p>" if left else ""
    return f'<div class="figure"><table><tr>{head}</tr>{body}</table></div>{more}'


def _cell(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'<td class="n">{_text(value)}</td>' if number else f"<td>{escape(_text(value))}</td>"


def _words(name: str) -> str:
    unit = "bit/s" if name.endswith("_bps") else _UNITS.get(name, "")
    return name.removesuffix("_bps").replace("_", " ") + (f" [{unit}]" if unit else "")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return f"{value:.10g}" if isinstance(value, float) else f"{value}"

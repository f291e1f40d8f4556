"""Print the inspection of a capture as tables on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from experiments.drawing.ladder_excerpt import FoldedPackets, LadderItem
from experiments.inspection.findings import CaptureFinding
from experiments.inspection.inspection import Inspection
from experiments.inspection.objects import ObjectView
from experiments.inspection.request_excerpt import node_name
from experiments.inspection.sender_states import ProbeState, Watermark
from experiments.inspection.senders import SenderView
from experiments.output.budget import Column, Table
from experiments.output.condensed import ALIKE, condensed
from experiments.output.counted import counted
from experiments.output.printer import Printer
from topologies.names import first_names
from topologies.units import format_duration, format_rate

__all__ = ["INSPECTED", "overview", "show"]

_SENDERS, _OBJECTS, _REQUESTS, _LINES = 20, 12, 10, 24
_STATES, _MARKS = 12, 12
# The year 10000.
_NO_DATE = 253_402_300_800
_BARS, _ASCII_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*#"


def show(printer: Printer, found: Inspection) -> None:
    """Print everything with the first of long lists; `--json` and `--html` have complete lists."""
    if printer.view.brief:
        printer.verbatim(_brief(found))
        return
    for line in overview(found):
        printer.line(line, indent=2)
    senders = list(found.session.senders.values())
    for sender in senders[:_SENDERS]:
        _sender(printer, sender)
    if len(senders) > _SENDERS:
        printer.line()
        printer.line(f"and {counted(len(senders) - _SENDERS, 'sender', more='more')}; --json lists them")
    _receivers(printer, found)
    _topics(printer, found)
    _requests(printer, found)
    _timeline(printer, found)
    _excerpt(printer, found)
    _findings(printer, found)


def _brief(found: Inspection) -> str:
    """Return one line: how much traffic there is, and whether it violates the protocol."""
    session, violations = found.session, found.session.findings.violations
    receivers = len(session.plain()["receivers"])
    return (
        f"{found.path}: {counted(session.messages, 'NORM message')}, {counted(len(session.senders), 'sender')}, "
        f"{counted(receivers, 'receiver')}, {counted(session.asked, 'request')}, "
        f"{counted(sum(row.count for row in violations), 'violation')}"
    )


def overview(found: Inspection) -> Iterator[str]:
    """Yield lines about the file as a whole."""
    plain, session = found.plain(), found.session
    yield (
        f"{found.path}: {counted(session.messages, 'NORM message')}, {session.octets} bytes, in {plain['duration']:.6g} s "
        f"from {_moment(session.begin)}, to {first_names(plain['to'], 4)}"
    )
    others = {
        "frames without UDP": plain["other_frames"],
        "other datagrams": plain["other_datagrams"],
        "copies at further interfaces": plain["copies"],
        "truncated datagrams": plain["cut"],
        "datagrams truncated too short to decode": plain["unreadable"],
        "batches captured before segmentation offload": plain["batches"],
        "fragments of incomplete datagrams": plain["unfinished_fragments"],
    }
    beside = [f"{count} {what}" for what, count in others.items() if count]
    if beside:
        yield "also: " + ", ".join(beside)
    yield from map(_tunnel, plain.get("tunnels", ()))
    yield from map(_signals, plain.get("signals", ()))
    counts = plain["others"]
    if counts["messages"]:
        yield (
            f"not in detail: {counted(counts['senders'], 'sender')} and {counted(counts['receivers'], 'receiver')} with "
            f"the fewest bytes, {counted(counts['messages'], 'message')}, {counts['bytes']} bytes"
        )
    if found.capture.file.flaw:
        yield f"{found.capture.file.flaw}; everything before it was read"
    cross_check = plain["scapy"]
    yield (
        cross_check.get("missing")
        or f"{counted(cross_check['checked'], 'message')} checked with scapy, {cross_check['disagree']} disagree"
    )


def _tunnel(flow: Mapping[str, Any]) -> str:
    """Return a line about the datagrams of one tunnel to another."""
    inside = ", ".join(f"{kind} {count}" for kind, count in flow["packets"].items())
    sites = ", ".join(map(str, flow["sites"]))
    keyed = f", {flow['keyed']} with a MAC" if flow["keyed"] else ""
    return (
        f"tunnel {flow['from']} to {flow['to']}: {flow['datagrams']} datagrams{keyed}, {flow['missing']} missing, of site "
        f"{sites} and group {', '.join(flow['groups'])}: {inside}"
    )


def _signals(told: Mapping[str, Any]) -> str:
    """Return a line about the control messages of one tunnel to its site or another tunnel."""
    counts = ", ".join(f"{kind} {count}" for kind, count in told["messages"].items())
    sites = ", ".join(map(str, told["sites"]))
    brakes = f"; at most {told['ring']:.0%} of the ring in use and {told['lost']:.2%} missing" if "ring" in told else ""
    return f"tunnel {told['from']} of site {sites} tells {told['to']}: {counts}{brakes}"


def _moment(time: float) -> str:
    """Format a time as date and time; out-of-range timestamps as seconds."""
    if not 0 <= time < _NO_DATE:
        return f"{time:.6g} s"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _sender(printer: Printer, sender: SenderView) -> None:
    plain = sender.plain()
    printer.line()
    printer.line(
        f"sender {node_name(sender.source_id)}, instance {sender.instance}, {', '.join(sender.addresses)} to "
        f"{', '.join(sender.targets)}: {plain['first']:.3f} s to {plain['last']:.3f} s, {_rate(plain['rate_bps'])} "
        f"(advertised {_rate(plain['says_rate_bps'])}), GRTT {format_duration(plain['grtt'][0])} to "
        f"{format_duration(plain['grtt'][1])}, back-off {plain['backoff']}, group size {plain['group_size']:g}",
        indent=2,
    )
    kinds = ", ".join(f"{kind} {count}" for kind, count in plain["packets"].items())
    printer.line(f"  packets: {kinds}; {plain['missing']} missing, {plain['late']} late", indent=2)
    repairs = plain["repairs"]
    requested = counted(repairs["segments_asked"], "segment", more="requested")
    refused = counted(repairs["refused"], "segment")
    ratio = "" if repairs["per_segment_asked"] is None else f", {repairs['per_segment_asked']:.3g} per requested segment"
    printer.line(
        f"  repairs: {repairs['packets']} for {requested}{ratio}; {repairs['unneeded']} "
        f"without a captured request; {refused} refused by SQUELCH, {repairs['open']} never repaired",
        indent=2,
    )
    quality = plain["suppression"]
    if quality["rounds"]:
        printer.line(
            f"  suppression: {quality['nacks_per_round']:.3g} requesting receivers per round in {quality['rounds']} rounds; "
            f"{quality['suppressed']} suppressed, {quality['silent']} silent",
            indent=2,
        )
    if sender.objects:
        printer.table(_objects(sender.objects))
    _states(printer, sender)


def _states(printer: Printer, sender: SenderView) -> None:
    """Print what the sender advertised over time, in a few of its probes, and which nodes answered its watermarks."""
    states, marks = sender.states.states, sender.states.watermarks
    if len(states) > 1:
        step = max(1, -(-len(states) // _STATES))
        printer.line()
        note = f"each row stands for {step} of {len(states)} probes" if step > 1 else ""
        rows = [_state(states[at : at + step]) for at in range(0, len(states), step)]
        printer.table(Table(_STATE, rows, "from probe to probe", note))
    if marks:
        rows = [[mark.time, mark.names, mark.flushes, len(mark.asked), len(mark.acked), _last(mark)] for mark in marks[:_MARKS]]
        note = f"and {len(marks) - _MARKS} more" if len(marks) > _MARKS else ""
        printer.line()
        printer.table(Table(_MARK, rows, "watermarks", note))


def _state(joined: Sequence[ProbeState]) -> list[Any]:
    """Return the row of the last of several probes, with what was sent since the row before."""
    state, rates = joined[-1], [each.sent_rate_bps for each in joined if each.sent_rate_bps is not None]
    return [
        state.time,
        state.grtt * 1000,
        _rate(state.says_rate_bps),
        _rate(sum(rates) / len(rates) if rates else None),
        sum(each.data for each in joined),
        sum(each.repairs for each in joined),
        sum(each.nacks for each in joined),
        None if state.clr is None else node_name(state.clr),
        None if state.clr_rtt is None else state.clr_rtt * 1000,
        None if state.clr_loss is None else state.clr_loss * 100,
        " ".join(state.clr_flags) or None,
    ]


def _last(mark: Watermark) -> float | None:
    return max(mark.acked.values(), default=None)


def _rate(value: float | None) -> str:
    return "-" if value is None else format_rate(float(f"{value / 8:.4g}"))


_OBJECT = (
    Column("object", rank=0),
    Column("name", rank=1),
    Column("kind", rank=8),
    Column("size", "bytes", rank=2),
    Column("coding", rank=10),
    Column("blocks", rank=5, right=True),
    Column("first", "s", rank=9, form=".3f"),
    Column("last", "s", rank=9, form=".3f"),
    Column("segments", rank=6),
    Column("parity", rank=7),
    Column("repairs", rank=3),
    Column("complete here", rank=4),
)
_RECEIVER = (
    Column("receiver", rank=0),
    Column("NACKs", rank=1),
    Column("ACKs", rank=8),
    Column("requested", rank=4),
    Column("lost (min.)", rank=3),
    Column("loss", "%", rank=2, form=".2f"),
    Column("covered", rank=6),
    Column("suppressed", rank=5),
    Column("silent", rank=7),
    Column("reported loss", "%", rank=10, form=".2f"),
    Column("reported RTT", "ms", rank=9),
)
_TOPICS = 20
_TOPIC = (
    Column("publisher", rank=0),
    Column("topic", rank=0),
    Column("priorities", rank=1),
    Column("messages", rank=0),
    Column("bytes", rank=2),
    Column("complete", rank=1),
    Column("lost", rank=0),
    Column("p50", "ms", rank=0, digits=3),
    Column("p99", "ms", rank=1, digits=3),
)
_REQUEST = (
    Column("packet", rank=0),
    Column("time", "s", rank=1, form=".6f"),
    Column("receiver", rank=2),
    Column("requests", rank=3),
    Column("symbols", rank=4),
    Column("new", rank=5),
)
_STATE = (
    Column("probe", "s", rank=0, form=".3f"),
    Column("GRTT", "ms", rank=0, digits=4),
    Column("advertised", rank=1, right=True),
    Column("sent", rank=2, right=True),
    Column("new", rank=5),
    Column("repairs", rank=4),
    Column("NACKs", rank=4),
    Column("CLR", rank=3),
    Column("CLR RTT", "ms", rank=3, digits=4),
    Column("CLR loss", "%", rank=3, form=".3f"),
    Column("CLR flags", rank=6),
)
_MARK = (
    Column("watermark", "s", rank=0, form=".3f"),
    Column("symbol", rank=0),
    Column("flushes", rank=1),
    Column("asked", rank=0),
    Column("acked", rank=0),
    Column("last ACK after", "s", rank=2, digits=4),
)
_EXCERPT = (Column("time", "s", rank=0, form=".6f"), Column("way", rank=0), Column("packet", rank=0))
INSPECTED = tuple(column.name for column in (*_OBJECT, *_STATE, *_MARK, *_RECEIVER, ALIKE, *_REQUEST, *_EXCERPT))
"""Names of the columns of all tables."""


def _objects(views: Sequence[ObjectView]) -> Table:
    note = f"and {len(views) - _OBJECTS} more" if len(views) > _OBJECTS else ""
    return Table(_OBJECT, list(map(_object, views[:_OBJECTS])), note=note)


def _object(view: ObjectView) -> list[Any]:
    plain = view.plain()
    coding = plain["coding"]
    scheme = f"fec {coding['fec_id']}, {coding['segment']} B, {coding['block']}+{coding['parity']}" if coding else None
    blocks = f"{plain['blocks_decodable']}/{coding['blocks'] if coding and coding['blocks'] is not None else '?'}"
    about = [view.id, plain["info"] or None, view.kind, plain["size"], scheme, blocks]
    return [*about, view.first, view.last, view.sources, view.parity, view.repairs, view.complete]


def _receivers(printer: Printer, found: Inspection) -> None:
    rows = found.session.plain()["receivers"]
    printer.line()
    if not rows:
        printer.line("no receiver sends feedback")
        return
    table = Table(_RECEIVER, list(map(_receiver, rows)), f"{counted(len(rows), 'receiver')} with feedback")
    for shown in condensed(table, lambda cells: (cells[4], cells[1]), "receivers that send feedback"):
        printer.table(shown)


def _topics(printer: Printer, found: Inspection) -> None:
    rows = found.topics.plain()
    if rows:
        unknown = found.topics.unknown
        note = f"messages of FJM2; of {unknown} more the first packet is missing" if unknown else "messages of FJM2"
        printer.line()
        printer.table(Table(_TOPIC, list(map(_topic, rows[:_TOPICS])), note))


def _topic(row: dict[str, Any]) -> list[Any]:
    delays = [None if row[key] is None else row[key] * 1000 for key in ("latency_p50", "latency_p99")]
    priorities = ", ".join(f"{priority}: {count}" for priority, count in row["priorities"].items())
    counts = [row[key] for key in ("messages", "bytes", "complete", "lost")]
    return [node_name(row["publisher"]), row["topic"], priorities, *counts, *delays]


def _receiver(row: dict[str, Any]) -> list[Any]:
    says = row["says"] or {}
    return [
        f"{node_name(row['node'])} at {row['addresses'][0]}",
        *(row[key] for key in ("nacks", "acks", "symbols_asked", "segments_lost")),
        None if row["loss"] is None else row["loss"] * 100,
        *(row[key] for key in ("nacks_covered", "rounds_suppressed", "rounds_silent")),
        says["loss"] * 100 if says else None,
        says["rtt"] * 1000 if says else None,
    ]


def _requests(printer: Printer, found: Inspection) -> None:
    rows = found.session.requests
    if not rows:
        return
    cells = [
        [row.packet, row.time, node_name(row.receiver), row.what, row.asked.symbols, row.asked.new] for row in rows[:_REQUESTS]
    ]
    note = f"and {found.session.asked - _REQUESTS} more" if found.session.asked > _REQUESTS else ""
    printer.line()
    printer.table(Table(_REQUEST, cells, "requests", note))


def _timeline(printer: Printer, found: Inspection) -> None:
    """Print a bar per interval and kind of packet, of intervals as long as the width requires."""
    timeline = found.session.timeline
    if not timeline.packets:
        return
    label, note = max(map(len, timeline.packets)) + 4, len("  up to 10000000")
    intervals = max(map(len, timeline.packets.values()))
    joined = -(-intervals // max(printer.width - label - note, 10))
    bars = _BARS if printer.is_unicode else _ASCII_BARS
    printer.line()
    printer.line(f"packets per {format_duration(timeline.interval * joined)}, each kind scaled to its maximum")
    for kind, single in timeline.packets.items():
        counts = [sum(single[at : at + joined]) for at in range(0, len(single), joined)]
        most = max(counts)
        drawn = "".join(bars[-(-count * (len(bars) - 1) // most)] for count in counts)
        printer.verbatim(f"  {kind:{label - 2}}{drawn}  up to {most}")


def _excerpt(printer: Printer, found: Inspection) -> None:
    cut = found.excerpt.cut()
    if cut is None:
        return
    note = "..." if len(cut.shown) > _LINES else ""
    printer.line()
    printer.table(Table(_EXCERPT, list(map(_line, cut.shown[:_LINES])), note=note))


def _line(item: LadderItem) -> list[Any]:
    if isinstance(item, FoldedPackets):
        first = item.packets[0]
        return ["", first.node, f"... {len(item.packets)} more {'repairs' if first.repair else first.kind}"]
    what = f"{'repair: ' if item.repair else ''}{item.kind} {item.brief}".rstrip()
    lost = f"  {item.missed[0].reason}" if item.missed else ""
    return [item.time, f"{item.node} -> {item.to}", f"{what}{lost}"]


def _findings(printer: Printer, found: Inspection) -> None:
    printer.line()
    violations = found.session.findings.violations
    if not violations:
        printer.line("no violations of the protocol")
    for heading, rows in (("VIOLATION", violations), ("notice", found.session.findings.notices)):
        for row in rows:
            for line in _finding(heading, row):
                printer.line(line, indent=2)


def _finding(heading: str, row: CaptureFinding) -> Iterator[str]:
    yield f"{heading} {row.rule}, {row.count} times: {row.about}"
    for packet, time, what in row.first:
        yield f"    packet {packet}, {time:.6f} s: {what}"

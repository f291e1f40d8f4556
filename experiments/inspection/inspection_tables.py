"""Print the inspection of a capture as tables on the terminal."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from experiments.drawing.ladder_excerpt import FoldedPackets, LadderItem
from experiments.inspection.findings import CaptureFinding
from experiments.inspection.inspection import Inspection
from experiments.inspection.objects import ObjectView
from experiments.inspection.request_excerpt import node_name
from experiments.inspection.senders import SenderView
from topologies.units import format_duration, format_rate

__all__ = ["overview", "show"]

_OBJECTS, _RECEIVERS, _REQUESTS, _LINES = 12, 20, 10, 24
# The year 10000.
_NO_DATE = 253_402_300_800
_BARS = " ▁▂▃▄▅▆▇█"


def show(found: Inspection) -> None:
    """Print everything with long lists cut; `--json` and `--html` have complete lists."""
    console = Console()
    console = console if console.is_terminal else Console(width=140)
    for line in overview(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for sender in found.session.senders.values():
        _sender(console, sender)
    _receivers(console, found)
    _requests(console, found)
    _timeline(console, found)
    _excerpt(console, found)
    _findings(console, found)


def overview(found: Inspection) -> Iterator[str]:
    """Yield lines about the file as a whole."""
    plain, session = found.plain(), found.session
    yield (
        f"{found.path}: {session.messages} NORM messages, {session.octets} bytes, in {plain['duration']:.6g} s "
        f"from {_moment(session.begin)}, to {', '.join(plain['to'][:4])}" + (", ..." if len(plain["to"]) > 4 else "")
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
    if found.capture.file.flaw:
        yield f"{found.capture.file.flaw}; everything before it was read"
    cross_check = plain["scapy"]
    yield (
        cross_check.get("missing")
        or f"{cross_check['checked']} messages checked with scapy, {cross_check['disagree']} disagree"
    )


def _moment(time: float) -> str:
    """Format a time as date and time; out-of-range timestamps as seconds."""
    if not 0 <= time < _NO_DATE:
        return f"{time:.6g} s"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _sender(console: Console, sender: SenderView) -> None:
    plain = sender.plain()
    console.print()
    console.print(
        f"sender {node_name(sender.source_id)}, instance {sender.instance}, {', '.join(sender.addresses)} to "
        f"{', '.join(sender.targets)}: {plain['first']:.3f} s to {plain['last']:.3f} s, {_rate(plain['rate_bps'])} "
        f"(advertised {_rate(plain['says_rate_bps'])}), GRTT {format_duration(plain['grtt'][0])} to "
        f"{format_duration(plain['grtt'][1])}, back-off {plain['backoff']}, group size {plain['group_size']:g}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    kinds = ", ".join(f"{kind} {count}" for kind, count in plain["packets"].items())
    console.print(f"  packets: {kinds}; {plain['missing']} missing, {plain['late']} late", markup=False, highlight=False)
    repairs = plain["repairs"]
    ratio = "" if repairs["per_segment_asked"] is None else f", {repairs['per_segment_asked']:.3g} per requested segment"
    console.print(
        f"  repairs: {repairs['packets']} for {repairs['segments_asked']} requested segments{ratio}; {repairs['unneeded']} "
        f"without a captured request; {repairs['refused']} segments refused by SQUELCH, {repairs['open']} never repaired",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if sender.objects:
        console.print(_objects(sender.objects))


def _rate(value: float | None) -> str:
    return "-" if value is None else format_rate(float(f"{value / 8:.4g}"))


def _objects(views: Sequence[ObjectView]) -> Table:
    table = Table()
    for name in (
        "object",
        "kind",
        "size",
        "coding",
        "blocks",
        "first",
        "last",
        "segments",
        "parity",
        "repairs",
        "complete here",
    ):
        table.add_column(name, justify="left" if name in ("kind", "coding", "complete here") else "right")
    for view in views[:_OBJECTS]:
        table.add_row(*_object(view))
    if len(views) > _OBJECTS:
        table.caption = f"and {len(views) - _OBJECTS} more"
    return table


def _object(view: ObjectView) -> Iterator[str]:
    plain = view.plain()
    coding = plain["coding"]
    yield f"{view.id}" + (f" {plain['info']}" if plain["info"] else "")
    yield view.kind
    yield "-" if plain["size"] is None else str(plain["size"])
    yield f"fec {coding['fec_id']}, {coding['segment']} B, {coding['block']}+{coding['parity']}" if coding else "-"
    yield f"{plain['blocks_decodable']}/{coding['blocks'] if coding and coding['blocks'] is not None else '?'}"
    yield f"{view.first:.3f} s"
    yield f"{view.last:.3f} s"
    yield from (str(count) for count in (view.sources, view.parity, view.repairs))
    yield {None: "-", True: "yes", False: "no"}[view.complete]


def _receivers(console: Console, found: Inspection) -> None:
    rows = found.session.plain()["receivers"]
    if not rows:
        console.print("\nno receiver sends feedback")
        return
    table = Table(title=f"{len(rows)} receivers that send feedback", title_justify="left")
    for name in ("receiver", "NACKs", "ACKs", "requested", "lost (min.)", "loss", "covered", "suppressed", "silent", "reports"):
        table.add_column(name, justify="left" if name in ("receiver", "reports") else "right")
    for row in rows[:_RECEIVERS]:
        says = row["says"]
        table.add_row(
            f"{node_name(row['node'])} at {row['addresses'][0]}",
            *(str(row[key]) for key in ("nacks", "acks", "symbols_asked", "segments_lost")),
            "-" if row["loss"] is None else f"{row['loss']:.2%}",
            *(str(row[key]) for key in ("nacks_covered", "rounds_suppressed", "rounds_silent")),
            "-" if says is None else f"loss {says['loss']:.2%}, RTT {format_duration(says['rtt'])}",
        )
    if len(rows) > _RECEIVERS:
        table.caption = f"and {len(rows) - _RECEIVERS} more"
    console.print()
    console.print(table)


def _requests(console: Console, found: Inspection) -> None:
    rows = found.session.requests
    if not rows:
        return
    table = Table(title="requests", title_justify="left")
    for name in ("packet", "time", "receiver", "requests", "symbols", "new"):
        table.add_column(name, justify="left" if name == "requests" else "right")
    for row in rows[:_REQUESTS]:
        table.add_row(
            str(row.packet),
            f"{row.time:.6f} s",
            node_name(row.receiver),
            row.what,
            str(row.asked.symbols),
            str(row.asked.new),
        )
    if found.session.asked > _REQUESTS:
        table.caption = f"and {found.session.asked - _REQUESTS} more"
    console.print(table)


def _timeline(console: Console, found: Inspection) -> None:
    timeline = found.session.timeline
    if not timeline.packets:
        return
    console.print(f"\npackets per {format_duration(timeline.interval)}, each kind scaled to its maximum", highlight=False)
    for kind, counts in timeline.packets.items():
        most = max(counts)
        bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts)
        console.print(f"  {kind:12}{bars}  up to {most}", markup=False, highlight=False, soft_wrap=True)


def _excerpt(console: Console, found: Inspection) -> None:
    cut = found.excerpt.cut()
    if cut is None:
        return
    console.print()
    for item in cut.shown[:_LINES]:
        console.print(_line(item), markup=False, highlight=False, soft_wrap=True)
    if len(cut.shown) > _LINES:
        console.print("  ...")


def _line(item: LadderItem) -> str:
    if isinstance(item, FoldedPackets):
        first = item.packets[0]
        return f"  {'':>12}    {first.node} ... {len(item.packets)} more {'repairs' if first.repair else first.kind}"
    what = f"{'repair: ' if item.repair else ''}{item.kind} {item.brief}".rstrip()
    lost = f"  {item.missed[0].reason}" if item.missed else ""
    return f"  {item.time:12.6f} s  {item.node} -> {item.to}  {what}{lost}"


def _findings(console: Console, found: Inspection) -> None:
    console.print()
    violations = found.session.findings.violations
    if not violations:
        console.print("no violations of the protocol")
    for heading, rows in (("VIOLATION", violations), ("notice", found.session.findings.notices)):
        for row in rows:
            for line in _finding(heading, row):
                console.print(line, markup=False, highlight=False, soft_wrap=True)


def _finding(heading: str, row: CaptureFinding) -> Iterator[str]:
    yield f"{heading} {row.rule}, {row.count} times: {row.about}"
    for packet, time, what in row.first:
        yield f"    packet {packet}, {time:.6f} s: {what}"

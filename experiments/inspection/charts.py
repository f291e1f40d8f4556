"""Drawings of an inspection: message counts over time by kind, and the sequence diagram around the first NACK."""

from experiments.drawing.ladder import draw_ladder
from experiments.drawing.svg import Drawing
from experiments.inspection.inspection import Inspection
from experiments.inspection.interval_counts import IntervalCounts
from topologies.units import format_duration

__all__ = ["ladder_svg", "timeline_svg"]

_LEFT, _WIDTH, _RIGHT, _TOP, _ROW = 92.0, 720.0, 110.0, 44.0, 40.0
_COLOURS = {"data": "blue", "parity": "teal", "repair": "green", "info": "violet", "nack": "orange", "ack": "violet"}


def timeline_svg(timeline: IntervalCounts) -> str:
    """Draw one row of bars per kind of message, scaled to its own maximum; tooltips show packets and bytes."""
    drawing = Drawing(f"packets per {format_duration(timeline.interval)}")
    drawing.width = _LEFT + _WIDTH + _RIGHT
    drawing.height = _TOP + _ROW * len(timeline.packets) + 34
    drawing.text_at(20, 22, drawing.title, size=14, bold=True, halo=False)
    for row, kind in enumerate(timeline.packets):
        _bars(drawing, timeline, kind, _TOP + _ROW * (row + 1) - 8)
    for part in range(5):
        x, y = _LEFT + _WIDTH * part / 4, drawing.height - 16
        time = timeline.interval * timeline.count * part / 4
        drawing.text_at(x, y, f"{time:.4g} s", size=10, colour="soft", anchor="middle", halo=False)
    return drawing.svg()


def _bars(drawing: Drawing, timeline: IntervalCounts, kind: str, bottom: float) -> None:
    counts, colour = timeline.packets[kind], _COLOURS.get(kind, "grey")
    most, step = max(counts), _WIDTH / timeline.count
    drawing.text_at(_LEFT - 10, bottom - 8, kind, anchor="end", halo=False)
    drawing.text_at(_LEFT + _WIDTH + 8, bottom - 8, f"up to {most}", size=10, colour="soft", halo=False)
    drawing.line([(_LEFT, bottom), (_LEFT + _WIDTH, bottom)], "faint", 1, layer=0)
    for place, count in enumerate(counts):
        if count:
            height = max((_ROW - 12) * count / most, 1.5)
            note = f"{place * timeline.interval:.6g} s: {count} {kind}, {timeline.octets[kind][place]} bytes"
            drawing.box(_LEFT + place * step, bottom - height, max(step - 1, 1), height, colour, layer=1, note=note)


def ladder_svg(found: Inspection) -> str:
    """Draw the sequence diagram around the first NACK; "" without messages."""
    cut = found.excerpt.cut()
    if cut is None:
        return ""
    return draw_ladder(cut, f"{found.path.name}: {cut.begin:.3f} s to {cut.end:.3f} s").svg()

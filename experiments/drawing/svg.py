"""Write SVG drawings that adapt to light and dark backgrounds."""

from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["Drawing", "page_rules"]

_LIGHT = {
    "ground": "#ffffff",
    "ink": "#1f2933",
    "soft": "#5b6875",
    "faint": "#d5dbe1",
    "band": "#eff3f7",
    "blue": "#2563c9",
    "green": "#137038",
    "orange": "#a84a08",
    "red": "#c62828",
    "violet": "#7c3aed",
    "teal": "#0b7077",
    "grey": "#5f6b77",
    "loss0": "#75899d",
    "loss1": "#a98600",
    "loss2": "#d97706",
    "loss3": "#d9541e",
    "loss4": "#c02626",
    "loss5": "#7d0f3a",
}
_DARK = {
    "ground": "#12181f",
    "ink": "#e5eaf0",
    "soft": "#9aa7b4",
    "faint": "#36424f",
    "band": "#1c2630",
    "blue": "#6ea8ff",
    "green": "#5bd38a",
    "orange": "#f7a35c",
    "red": "#ff7b7b",
    "violet": "#b794ff",
    "teal": "#4fd0d8",
    "grey": "#8b98a5",
    "loss0": "#5f7387",
    "loss1": "#f2d75c",
    "loss2": "#f7b046",
    "loss3": "#f58549",
    "loss4": "#f25a52",
    "loss5": "#e0468a",
}


def _rules(colours: dict[str, str]) -> str:
    fills = [f".f-{name}{{fill:{value}}} .s-{name}{{stroke:{value}}}" for name, value in colours.items()]
    return "\n".join([*fills, f".halo{{stroke:{colours['ground']}}}"])


def page_rules() -> str:
    """Return CSS for a page with drawings whose root element has `data-theme`: it decides, and the colours are variables."""
    found = []
    for theme, colours in (("light", _LIGHT), ("dark", _DARK)):
        root = f':root[data-theme="{theme}"]'
        found.append(f"{root}{{{''.join(f'--{name}:{value};' for name, value in colours.items())}}}")
        found += [f"{root} {rule}" for rule in _rules(colours).replace("} .", f"}}\n{root} .").splitlines()]
    return "\n".join(found)


# Classes instead of CSS variables, which some viewers do not support.
_STYLE = f"""
text {{ font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }}
.halo {{ paint-order: stroke; stroke-width: 3px; stroke-linejoin: round }}
{_rules(_LIGHT)}
@media (prefers-color-scheme: dark) {{
{_rules(_DARK)}
}}
"""


class Drawing:
    """A drawing composed of shapes in three layers.

    Colours are names of the style: ground ink soft faint band blue green ...
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.width = self.height = 0.0
        self._layers: tuple[list[str], list[str], list[str]] = ([], [], [])

    def _add(
        self,
        layer: int,
        tag: str,
        content: str | None = None,
        *,
        note: str = "",
        paint: tuple[str | None, str | None] = (None, None),
        halo: bool = False,
        **attributes: object,
    ) -> None:
        """Add one shape; `paint` is (fill, stroke)."""
        fill, stroke = paint
        classes = [f"f-{fill}" if fill else "", f"s-{stroke}" if stroke else "", "halo" if halo else ""]
        attributes = {"class": " ".join(filter(None, classes)) or None, "fill": None if fill else "none"} | attributes
        given = {key.replace("_", "-"): value for key, value in attributes.items() if value is not None}
        written = "".join(f' {key}="{_value(value)}"' for key, value in given.items())
        inside = (f"<title>{escape(note)}</title>" if note else "") + escape(content or "")
        self._layers[layer].append(f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>")

    def line(
        self,
        points: Iterable[tuple[float, float]],
        colour: str,
        width: float = 1.5,
        *,
        dash: str | None = None,
        opacity: float | None = None,
        layer: int = 1,
        note: str = "",
    ) -> None:
        """Draw an open polyline."""
        path = "M" + " L".join(f"{_value(x)} {_value(y)}" for x, y in points)
        pen: dict[str, Any] = {"stroke_width": width, "stroke_dasharray": dash, "opacity": opacity, "stroke_linecap": "round"}
        self._add(layer, "path", d=path, paint=(None, colour), note=note, stroke_linejoin="round", **pen)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        colour: str,
        *,
        ring: str | None = None,
        rounding: float = 0.0,
        opacity: float | None = None,
        layer: int = 0,
        note: str = "",
    ) -> None:
        """Draw a filled rectangle with an optional border colour."""
        where: dict[str, Any] = {"x": x, "y": y, "width": width, "height": height, "rx": rounding or None, "opacity": opacity}
        self._add(layer, "rect", paint=(colour, ring), note=note, **where)

    def dot(
        self, x: float, y: float, radius: float, colour: str, *, ring: str | None = None, layer: int = 2, note: str = ""
    ) -> None:
        """Draw a filled circle with an optional border colour."""
        self._add(layer, "circle", paint=(colour, ring), note=note, cx=x, cy=y, r=radius, stroke_width=2 if ring else None)

    def cross(self, x: float, y: float, colour: str = "red", size: float = 4.5, note: str = "") -> None:
        """Draw a cross, the symbol of a loss."""
        path = f"M{_value(x - size)} {_value(y - size)} l{2 * size} {2 * size} m0 {-2 * size} l{-2 * size} {2 * size}"
        self._add(2, "path", d=path, paint=(None, colour), note=note, stroke_width=2.4, stroke_linecap="round")

    def arrowhead(self, x: float, y: float, dx: float, dy: float, colour: str, size: float = 7) -> None:
        """Draw a triangle with its tip at (x, y), pointing in direction (dx, dy)."""
        length = (dx * dx + dy * dy) ** 0.5 or 1.0
        ux, uy = dx / length * size, dy / length * size
        corners = [(x, y), (x - ux - uy * 0.45, y - uy + ux * 0.45), (x - ux + uy * 0.45, y - uy - ux * 0.45)]
        self._add(2, "polygon", paint=(colour, None), points=" ".join(f"{_value(a)},{_value(b)}" for a, b in corners))

    def text_at(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 11,
        colour: str = "ink",
        anchor: str = "start",
        bold: bool = False,
        halo: bool = True,
        italic: bool = False,
    ) -> None:
        """Draw text vertically centred at `y`."""
        style: dict[str, Any] = {"font_weight": 600 if bold else None, "font_style": "italic" if italic else None}
        where: dict[str, Any] = {
            "x": x,
            "y": y + size * 0.36,
            "font_size": size,
            "text_anchor": None if anchor == "start" else anchor,
        }
        self._add(2, "text", text, paint=(colour, None), halo=halo, **where, **style)

    def svg(self) -> str:
        """Return the SVG document."""
        width, height = _value(self.width), _value(self.height)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{escape(self.title)}">'
        )
        ground = f'<rect width="{width}" height="{height}" rx="8" class="f-ground"/>'
        shapes = [shape for layer in self._layers for shape in layer]
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", f"<style>{_STYLE}</style>", ground, *shapes, "</svg>\n"]
        )


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(str(value))

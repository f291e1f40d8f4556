"""The frame of every report: one self-contained HTML file with its style, data and scripts, and links to its sections."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from experiments.output.extras import need

__all__ = ["Section", "asset", "command_line", "plotly", "render"]

ASSETS = files("experiments.report") / "assets"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading and a link to it; `body` is HTML."""

    name: str
    title: str
    body: str


def render(
    title: str,
    lead: str,
    sections: Iterable[Section],
    data: dict[str, Any],
    scripts: Sequence[str],
    command: str,
    style: str = "",
) -> str:
    """Render a page that loads nothing.

    `lead` is HTML below the title, `data` what the scripts read as DATA, `scripts` are JavaScript in the order in which they
    run, `command` makes the page again, `style` is added to that of all pages.
    """
    parts = list(sections)
    links = "".join(f'<a href="#{part.name}">{escape(part.title)}</a>' for part in parts)
    body = "\n".join(f'<section id="{part.name}"><h2>{escape(part.title)}</h2>\n{part.body}\n</section>' for part in parts)
    return Template(asset("page.html")).substitute(
        title=escape(title),
        lead=lead,
        links=links,
        body=body,
        command=escape(command),
        style=asset("page.css") + style,
        # Escape "</", which would end the script element.
        data=json.dumps(data, allow_nan=False).replace("</", "<\\/"),
        scripts="\n".join(f"<script>{text}</script>" for text in scripts),
    )


def asset(name: str) -> str:
    """Return a file of the package's assets."""
    return (ASSETS / name).read_text(encoding="utf-8")


def plotly() -> str:
    """Return the source of plotly; UnsupportedError if it is not installed."""
    need("a report", "plotly")
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def command_line(text: str) -> str:
    """Return a command with a button that copies it."""
    return f'<div class="command"><code>{escape(text)}</code><button type="button">copy</button></div>'

"""Draw figures with matplotlib as PNG and SVG files for papers; equal numbers give equal bytes."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass, replace
from functools import cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from experiments.report.figures import HOLLOW, Figure, FigureAxis, Panel, has_hollow, has_own_scales

__all__ = ["prepare", "save"]

PALETTE = ("#2563c9", "#c2570c", "#15803d", "#7c3aed", "#d02c2c", "#0d7f86", "#a16207", "#be185d")
SOFT, FAINT = "#5b6875", "#d5dbe1"
DOTS_PER_INCH = 160
FEW = 4
"""Figures below which other processes are not worth their start."""
STYLE: Any = {
    "svg.hashsalt": "mcastlab",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9aa5b1",
    "axes.labelcolor": "#1f2933",
    "axes.titlesize": 9.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "grid.color": "#e3e8ed",
}


def prepare() -> None:
    """Start the processes that draw, so that they import matplotlib while the caller reads data."""
    for _ in range(_cores()):
        _pool().submit(_cores)


def save(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg of every figure, on all cores; return the paths."""
    wanted = list(figures)
    folder.mkdir(parents=True, exist_ok=True)
    if len(wanted) < FEW:
        return [path for figure in wanted for path in _save(figure, folder)]
    written = [_pool().submit(_save, figure, folder) for figure in wanted]
    return [path for one in written for path in one.result()]


@cache
def _pool() -> ProcessPoolExecutor:
    # Forked by a process that only imports: this one has threads of PySpark and numerical libraries.
    context = get_context("forkserver")
    context.set_forkserver_preload(
        [__name__, "matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"]
    )
    return ProcessPoolExecutor(_cores(), context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this process when the one that wants its figures has ended, by whatever signal."""

    def wait() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _cores() -> int:
    return os.cpu_count() or 1


def _save(figure: Figure, folder: Path) -> list[Path]:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    paths = [folder / f"{figure.name}.{kind}" for kind in ("png", "svg")]
    with matplotlib.rc_context(STYLE):
        drawn = _draw(_literal(figure), pyplot)
        # The layout is the same for both files. `savefig` would draw each of them once more, to find it.
        drawn.get_layout_engine().execute(drawn)
        drawn.set_layout_engine("none")
        drawn.set_dpi(DOTS_PER_INCH)
        png: Any = FigureCanvasAgg(drawn)
        png.print_png(paths[0], metadata={"Software": None})
        svg: Any = FigureCanvasSVG(drawn)
        svg.print_svg(paths[1], metadata={"Date": None})
        pyplot.close(drawn)
    return paths


def _literal(value: Any) -> Any:
    """Return a figure, or a part of it, whose texts matplotlib draws as they are.

    Two dollars would enclose a formula, and a legend leaves out what begins with an underscore.
    """
    if isinstance(value, str):
        text = value.replace("$", r"\$")
        return f"\u200b{text}" if text.startswith("_") else text
    if isinstance(value, list | tuple):
        return type(value)(map(_literal, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{item.name: _literal(getattr(value, item.name)) for item in fields(value)})


def _draw(figure: Figure, pyplot: Any) -> Any:
    count = len(figure.panels)
    columns = 2 if count == 4 else min(count, 3)
    lines = -(-count // columns)
    height = max(2.6, 0.26 * len(figure.panels[0].marks) + 1.2) if figure.kind in ("rows", "bars") else 2.9 * lines
    size = (max(5.0, 3.3 * columns), height)
    level = figure.kind != "heat" and not has_own_scales(figure)
    share = figure.kind not in ("rows", "bars", "heat")
    drawn, grid = pyplot.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained", sharex=share, sharey=level)
    for place, axes in enumerate(grid.flat):
        if place >= count:
            axes.set_visible(False)
            continue
        panel = figure.panels[place]
        axes.set_title(panel.title)
        _frame(axes, figure, place % columns == 0, place + columns >= count)
        KINDS[figure.kind](axes, figure, panel)
    _legend(drawn, list(grid.flat), hollow=has_hollow(figure))
    drawn.suptitle(figure.title[:1].upper() + figure.title[1:], fontsize=10.5, fontweight="bold")
    return drawn


def _frame(axes: Any, figure: Figure, left: bool, bottom: bool) -> None:
    if bottom:
        axes.set_xlabel(figure.x.label)
    if left:
        axes.set_ylabel(figure.y.label)
    if figure.kind != "heat":
        axes.grid(linewidth=0.7)
        axes.set_axisbelow(True)
    if figure.x.log and figure.kind not in ("heat", "boxes"):
        axes.set_xscale("log")
        if figure.x.ticks:
            axes.set_xticks(
                figure.x.ticks, [f"{tick:.6g}" for tick in figure.x.ticks], rotation=45 if len(figure.x.ticks) > 6 else 0
            )
            axes.set_xticks([], minor=True)
    elif figure.x.whole and figure.kind not in ("heat", "boxes"):
        axes.locator_params(axis="x", integer=True)
    if figure.y.log and figure.kind != "heat":
        axes.set_yscale("log")


def _legend(drawn: Any, panels: Sequence[Any], *, hollow: bool) -> None:
    """Draw one legend for all panels, each of which may have lines that others lack."""
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    if hollow:
        (found[HOLLOW],) = panels[0].plot([], [], "o", color=SOFT, markerfacecolor="white")
    if found:
        drawn.legend(found.values(), found.keys(), loc="outside lower center", ncols=min(3 if hollow else 4, len(found)))


def _places(axis: FigureAxis, x: Sequence[Any]) -> list[Any]:
    return [axis.categories.index(value) for value in x] if axis.categories else list(x)


def _ticks(axes: Any, axis: FigureAxis) -> None:
    if axis.categories:
        axes.set_xticks(range(len(axis.categories)), axis.categories)


def _lines(axes: Any, figure: Figure, panel: Panel) -> None:
    measured = [mark for mark in panel.marks if not mark.theory]
    for mark in panel.marks:
        colour, x = _colour(mark.colour), _places(figure.x, mark.x)
        if mark.theory:
            axes.plot(x, mark.y, "--", color=colour, linewidth=1.3, label=mark.label)
            continue
        # Points of earlier lines are larger, so that they are seen below those of a line that runs upon theirs.
        size = 3.5 + min(1.5, 4 / len(measured)) * (len(measured) - 1 - measured.index(mark))
        axes.plot(x, mark.y, "o-", color=colour, markersize=size, linewidth=1.5, label=mark.label or None)
        hollow = [(at, y) for at, y, is_hollow in zip(x, mark.y, mark.hollow, strict=False) if is_hollow]
        if hollow:
            axes.plot(*zip(*hollow, strict=True), "o", color=colour, markersize=max(size, 5.0), markerfacecolor="white")
        kept = [(at, low, high) for at, low, high in zip(x, mark.low, mark.high, strict=True) if low is not None]
        if kept:
            axes.fill_between(*map(list, zip(*kept, strict=True)), color=colour, alpha=0.16, linewidth=0)
    _ticks(axes, figure.x)


def _bands(axes: Any, figure: Figure, panel: Panel) -> None:
    del figure
    for mark in panel.marks:
        colour = _colour(mark.colour)
        axes.fill_between(mark.x, mark.at[0], mark.at[4], color=colour, alpha=0.12, linewidth=0)
        axes.fill_between(mark.x, mark.at[1], mark.at[3], color=colour, alpha=0.22, linewidth=0)
        axes.plot(mark.x, mark.at[2], color=colour, linewidth=1.5, label=mark.label or None)


def _heat(axes: Any, figure: Figure, panel: Panel) -> None:
    (mark,) = panel.marks
    every = [value for other in figure.panels for row in other.marks[0].z for value in row if value is not None]
    cells = [[float("nan") if value is None else value for value in row] for row in mark.z]
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis", vmin=min(every), vmax=max(every))
    axes.set_xticks(range(len(mark.x)), mark.x, rotation=45 if len(mark.x) > 6 else 0)
    axes.set_yticks(range(len(mark.y)), mark.y)
    axes.spines[:].set_visible(False)
    if panel is figure.panels[-1]:
        axes.figure.colorbar(image, ax=axes.figure.axes, label=figure.legend[0])


def _boxes(axes: Any, figure: Figure, panel: Panel) -> None:
    assert figure.x.categories is not None, "boxes stand at categories"
    width = 0.8 / max(1, len(panel.marks))
    for number, mark in enumerate(panel.marks):
        colour = _colour(mark.colour)
        stats = [{"whislo": at[0], "q1": at[1], "med": at[2], "q3": at[3], "whishi": at[4], "fliers": []} for at in mark.at]
        where = [place + (number - (len(panel.marks) - 1) / 2) * width for place in _places(figure.x, mark.x)]
        line = {"color": colour}
        box = {"facecolor": colour + "40", "edgecolor": colour}
        axes.bxp(
            stats,
            where,
            widths=width * 0.8,
            patch_artist=True,
            boxprops=box,
            medianprops=line,
            whiskerprops=line,
            capprops=line,
        )
        axes.plot([], [], "s", color=colour, label=mark.label or None)
    _ticks(axes, figure.x)


def _dots(axes: Any, figure: Figure, panel: Panel) -> None:
    for number, label in enumerate(figure.legend or ("",)):
        mine = [dot for dot in panel.marks if dot.colour == number]
        x, y = _places(figure.x, [dot.x for dot in mine]), [dot.y for dot in mine]
        axes.scatter(x, y, s=16, color=_colour(number), alpha=0.75, label=label or None)
    front = sorted((dot.x, dot.y) for dot in panel.marks if dot.front)
    if front:
        axes.plot(*zip(*front, strict=True), "o:", color=SOFT, markerfacecolor="none", markersize=7, label="Pareto front")
    if figure.band is not None:
        axes.axhspan(*figure.band, color=_colour(2), alpha=0.12, linewidth=0)
    _ticks(axes, figure.x)


def _bars(axes: Any, figure: Figure, panel: Panel) -> None:
    left = [0.0] * len(panel.marks)
    greys = {"chance": FAINT, "interaction": SOFT}
    for number, part in enumerate(figure.legend):
        values = [bar.parts[number] for bar in panel.marks]
        axes.barh([bar.label for bar in panel.marks], values, left=left, color=greys.get(part, _colour(number)), label=part)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def _rows(axes: Any, figure: Figure, panel: Panel) -> None:
    del figure
    for place, row in enumerate(reversed(panel.marks)):
        colour = _colour(0 if row.clear else 5)
        if row.low is not None:
            axes.plot([row.low, row.high], [place, place], color=SOFT, linewidth=1.2)
        axes.plot(row.mean, place, "o", color=colour, markerfacecolor=colour if row.clear else "white")
    axes.set_yticks(range(len(panel.marks)), [row.label for row in reversed(panel.marks)])
    axes.axvline(0, color=SOFT, linewidth=0.8, linestyle=":")


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


KINDS: Mapping[str, Callable[[Any, Figure, Panel], None]] = {
    "lines": _lines,
    "bands": _bands,
    "heat": _heat,
    "boxes": _boxes,
    "dots": _dots,
    "bars": _bars,
    "rows": _rows,
}

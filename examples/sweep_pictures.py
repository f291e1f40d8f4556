"""Draw the figures of docs/experiments.md from the results of the ready sweeps.

    mcastlab sweep experiments/sweeps/router.yaml --out router
    python -m examples.sweep_pictures router --svg docs/images/sweep-router.svg

Lines and points are means over runs; dashed lines are theory.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from examples import new_file
from mcastlab import FORMULAS, McastlabError, UsageError, open_sweep
from protocols.norm.congestion.equation import tcp_rate

COLOURS = ("#1f5fa8", "#d1495b", "#2a9d4f", "#b07d12", "#7a4fa3", "#4a4a4a", "#22a3b5")
RECEIVERS, LOSS_P, BURST_R = "topology.receivers", "topology.link.down.loss.p", "topology.link.down.loss.r"


def read(folder: Path) -> Any:
    """Return the successful runs of a sweep as a pandas DataFrame."""
    frame = open_sweep(folder)
    return frame[frame["status"] == "ok"]


def column_of(axis: str) -> str:
    """Return the column name of an axis."""
    return "p_" + axis.replace(".", "__")


def pick(frame: Any, case: str | None = None, **values: object) -> Any:
    """Select the runs of a case with these values on the axes; `__` in a name stands for a dot."""
    if case is not None:
        frame = frame[frame["case"] == case]
    for key, value in values.items():
        frame = frame[frame[f"p_{key}"] == value]
    return frame


def means(frame: Any, axis: str, metric: str) -> tuple[list[float], list[float], list[float]]:
    """Return the values of an axis, the mean of a metric at each, and its standard error."""
    groups = frame.dropna(subset=[f"m_{metric}"]).groupby(column_of(axis))[f"m_{metric}"]
    return list(groups.mean().index), list(groups.mean()), list(groups.sem().fillna(0.0))


def line(plot: Any, frame: Any, axis: str, metric: str, **style: Any) -> None:
    """Plot the means of a metric over an axis, with bars of two standard errors."""
    x, y, error = means(frame, axis, metric)
    plot.errorbar(x, y, [2 * e for e in error], **{"marker": "o", "markersize": 3.5, "linewidth": 1.2} | style)


def tidy(plot: Any, title: str, x: str, **scales: Any) -> None:
    """Set title, label, scales and grid of a plot."""
    plot.set(title=title, xlabel=x, **scales)
    plot.grid(alpha=0.3)
    plot.spines[["top", "right"]].set_visible(False)


def legend(figure: Any, plots: Any) -> None:
    """Write one legend for all plots below them, where it covers no curve."""
    found: dict[str, Any] = {}
    for plot in plots:
        handles, labels = plot.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=min(len(found), 5), frameon=False, fontsize=8)


def atlas(frame: Any, plots: Any) -> None:
    """Draw NACKs per loss over the number of receivers and over K, and the repair latency."""
    link, grtt = 0.025, 0.1
    groups = [10.0**n for n in range(1, 6)]
    for colour, factor in zip(COLOURS, (1, 2, 4, 6), strict=False):
        exact = [FORMULAS["nacks"].value(receivers=g, gsize=g, backoff=factor, grtt=grtt, link_delay=link) for g in groups]
        plots[0].plot(groups, exact, "--", color=colour, linewidth=1)
        plots[0].plot(groups, [FORMULAS["nacks-rfc5401"].value(gsize=g, backoff=factor) for g in groups], ":", color=colour)
        known = frame[frame["p_protocol__gsize"] == frame["p_topology__receivers"]]
        for case, filled in (("shared", colour), ("independent", "none")):
            line(
                plots[0],
                pick(known, case, protocol__backoff=factor),
                RECEIVERS,
                "requests_per_loss",
                color=colour,
                linestyle="none",
                markerfacecolor=filled,
                label=f"K = {factor}" if filled == colour else None,
            )
        for case, dash in (("shared", "-"), ("shared-spread", ":")):
            line(plots[2], pick(known, case, protocol__backoff=factor), RECEIVERS, "repair_wait", color=colour, linestyle=dash)
    tidy(plots[0], "NACKs per loss, group size known", "receivers", xscale="log", yscale="log")
    for label, style in (
        ("shared loss", {"marker": "o", "linestyle": "none"}),
        ("independent loss of 1 %", {"marker": "o", "linestyle": "none", "markerfacecolor": "none"}),
        ("theory, exact", {"linestyle": "--"}),
        ("theory of RFC 5401", {"linestyle": ":"}),
    ):
        plots[0].plot([], [], color="#444", markersize=3.5, label=label, **style)
    _safe_region(pick(frame, "shared", topology__receivers=1000), plots[1])
    tidy(plots[2], "wait for a repair [s]; dotted: RTTs spread", "receivers", xscale="log", ylim=(0, None))


def _safe_region(frame: Any, plot: Any) -> None:
    """Draw NACKs per loss of a thousand receivers over K and the sender's estimate of the group size."""
    table = frame.pivot_table(index="p_protocol__backoff", columns="p_protocol__gsize", values="m_requests_per_loss")
    image = plot.imshow(table.to_numpy() ** 0.25, cmap="RdYlGn_r", aspect="auto", origin="lower")
    for (row, column), value in _cells(table):
        red, green, blue, _ = image.cmap(image.norm(value**0.25))
        # Black or white, whichever has the higher contrast.
        dark = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.179
        plot.text(column, row, f"{value:.3g}", ha="center", va="center", color="white" if dark else "black")
    plot.set(xticks=range(table.shape[1]), xticklabels=[f"{g:,}" for g in table.columns])
    plot.set(yticks=range(table.shape[0]), yticklabels=table.index, ylabel="K")
    plot.set(title="NACKs per loss, 1,000 receivers", xlabel="group size that the sender announces [receivers]")


def _cells(table: Any) -> Iterable[tuple[tuple[int, int], float]]:
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            yield (row, column), float(table.iat[row, column])


def fec(frame: Any, plots: Any) -> None:
    """Draw transmissions, completion time, and the effect of burst loss on short blocks."""
    frame = frame.assign(p_lost=frame[column_of(LOSS_P)] / (frame[column_of(LOSS_P)] + frame[column_of(BURST_R)]))
    frame["p_lost"] = (100 * frame["p_lost"]).round()
    bursts = frame[column_of(BURST_R)] == 0.2
    for colour, case in zip(COLOURS, ("arq", "on-demand", "proactive"), strict=False):
        for rows, dash, what in ((~bursts, "-", ""), (bursts, ":", " (bursts)")):
            some = pick(frame[rows], case, topology__receivers=100, protocol__block=64)
            line(plots[0], some, "lost", "transmissions", color=colour, linestyle=dash, label=case + what)
            line(plots[1], some, "lost", "completion_time", color=colour, linestyle=dash)
    for colour, block in zip(COLOURS[3:], (16, 64), strict=False):
        for rows, dash, what in ((~bursts, "-", "one by one"), (bursts, ":", "in bursts")):
            some = pick(frame[rows], "on-demand", topology__receivers=100, protocol__block=block)
            line(plots[2], some, "lost", "transmissions", color=colour, linestyle=dash, label=f"block {block}, {what}")
    for losses, formula, extra in (((0.01, 0.05, 0.1), "arq", {}), ((0.01, 0.05, 0.1), "fec", FEC)):
        expected = [FORMULAS[formula].value(receivers=100, loss=p, shared=0, **extra) for p in losses]
        plots[0].plot([100 * p for p in losses], expected, "kx", markersize=6, label="theory" if formula == "arq" else None)
    for plot, title in zip(
        plots, ("transmissions per packet", "completion time [s]", "on demand: transmissions, two block sizes"), strict=True
    ):
        tidy(plot, title, "loss [%], 100 receivers")


FEC = {"block": 64, "size": 358400, "segment": 1400, "proactive": 0}


def storm(frame: Any, plots: Any) -> None:
    """Draw the effect of suppression, aggregation and hold-off, each switched off alone."""
    metrics = ("requests_per_loss", "repair_multiplicity", "repair_wait")
    titles = ("requests per loss", "repair packets per loss", "wait for a repair [s]")
    for colour, case in zip(COLOURS, sorted(frame["case"].unique()), strict=True):
        for plot, metric in zip(plots, metrics, strict=True):
            line(plot, pick(frame, case), RECEIVERS, metric, color=colour, label=case)
    for plot, title in zip(plots, titles, strict=True):
        tidy(plot, title, "receivers", xscale="log", yscale="log" if plot is not plots[2] else "linear")


def distributor_storm(frame: Any, plots: Any) -> None:
    """Draw the effect of the three remedies of the Distributor, each switched off alone."""
    metrics = ("repair_multiplicity", "requests_per_loss", "losses")
    titles = ("retransmissions per loss", "requests per loss", "packets lost in a run")
    for colour, case in zip(COLOURS, sorted(frame["case"].unique()), strict=False):
        # Wide and below the others, which it coincides with in places.
        width = 5 if case == "all-three" else 1.2
        for plot, metric in zip(plots, metrics, strict=True):
            line(plot, pick(frame, case), RECEIVERS, metric, color=colour, label=case, linewidth=width, alpha=1 / width**0.5)
    for plot, title in zip(plots, titles, strict=True):
        tidy(plot, title, "receivers", xscale="log", yscale="log")


def router(frame: Any, plots: Any) -> None:
    """Draw goodput over load, packet size and processing time per packet."""
    frame = frame.assign(p_load=frame["p_protocol__rate"] / 1e6, p_cost=frame["p_topology__nodes__router__cpu"] * 1e6)
    for colour, case in zip(COLOURS, ("single-half", "single-full", "dual"), strict=False):
        some = pick(frame, case)
        line(plots[0], pick(some, protocol__segment=1440, cost=5.0), "load", "goodput_mbit_s", color=colour, label=case)
        for plot, axis, fixed in (
            (plots[1], "protocol__segment", {"cost": 5.0}),
            (plots[2], "cost", {"protocol__segment": 1440}),
        ):
            best = pick(some, **fixed).groupby(f"p_{axis}")["m_goodput_mbit_s"].max()
            plot.plot(best.index, best, "o-", color=colour, markersize=3.5, linewidth=1.2)
    costs = [60, 80, 100, 150, 200]
    plots[2].plot(costs, [1440 * 8 / cost for cost in costs], "k--", linewidth=1, label="theory: one packet per processor time")
    for plot, x in zip(plots, ("sent [Mbit/s]", "content of a packet [B]", "processor time per packet [us]"), strict=True):
        plot.axhline(50, color="#888", linewidth=0.8)
        tidy(plot, "goodput [Mbit/s]" if plot is plots[0] else "best goodput at any load [Mbit/s]", x, ylim=(0, 100))


def baselines(frame: Any, plots: Any) -> None:
    """Draw the throughput that processing allows, at two loss probabilities, and the feedback."""
    groups = (1, 10, 30, 100)
    for colour, case in zip(COLOURS, ("norm", "srm", "n2", "n1", "a"), strict=False):
        for plot, loss in zip(plots[:2], (0.01, 0.1), strict=True):
            some = pick(frame, case, topology__link__down__loss__p=loss)
            line(plot, some, RECEIVERS, "processing_throughput", color=colour, label=case)
            if formula := FORMULAS.get(f"{case}-throughput"):
                plot.plot(groups, [formula.value(receivers=r, loss=loss) for r in groups], "--", color=colour, linewidth=1)
            tidy(plot, f"packets per packet handled, {loss:.0%} loss", "receivers", xscale="log", yscale="log")
        line(plots[2], pick(frame, case, topology__link__down__loss__p=0.1), RECEIVERS, "feedback", color=colour)
    plots[0].plot([], [], "--", color="#444", linewidth=1, label="theory")
    tidy(plots[2], "feedback for 100 packets, 10% loss [packets]", "receivers", xscale="log", yscale="log")


def twin(frame: Any, plots: Any) -> None:
    """Draw the metrics of the simulator and of Mininet."""
    frame = frame.assign(p_lost=100 * frame["p_topology__link__down__loss"])
    for colour, rate in zip(COLOURS, (2e6, 8e6), strict=False):
        for world, style in (
            ("sim", {"linestyle": "-"}),
            ("emu", {"linestyle": "none", "marker": "s", "markerfacecolor": "none"}),
        ):
            some = pick(frame, backend=world, protocol__rate=rate)
            for plot, metric in zip(plots, ("completion_time", "repairs_sent", "nacks_sent"), strict=True):
                line(plot, some, "lost", metric, color=colour, label=f"{world}, {rate / 1e6:g} Mbit/s", **style)
    for plot, title in zip(plots, ("completion time [s]", "repairs [packets]", "NACKs [count]"), strict=True):
        tidy(plot, title, "loss [%]", ylim=(0, None))


def congestion(frame: Any, plots: Any) -> None:
    """Draw the use of the bottleneck, the share beside TCP, and the rate that loss allows, over the round-trip time."""
    rtt = 2 * (frame["p_delay"] + 0.0002)
    frame = frame.assign(p_rtt=1000 * rtt, m_used=frame["m_goodput_mbit_s"] * 1e6 / frame["p_rate"])
    for colour, rate in zip(COLOURS, (2, 4, 8), strict=False):
        bottleneck = frame[frame["p_rate"] == rate * 1e6]
        line(plots[0], pick(bottleneck, "alone"), "rtt", "used", color=colour, label=f"{rate} Mbit/s")
        line(plots[1], pick(bottleneck, "reno"), "rtt", "share", color=colour, label="beside Reno")
        line(plots[1], pick(bottleneck, "cubic"), "rtt", "share", color=colour, linestyle="--", label="beside CUBIC")
        line(plots[2], pick(bottleneck, "lossy"), "rtt", "goodput_mbit_s", color=colour)
    trips = [5, 10, 20, 40, 80, 160, 205]
    plots[2].plot(trips, [8e-6 * tcp_rate(1432, trip / 1000, 0.01) for trip in trips], "k--", linewidth=1, label="equation")
    for limit in (0.5, 2.0):
        plots[1].axhline(limit, color="#888", linewidth=0.8)
    x = "round-trip time without queues [ms]"
    tidy(plots[0], "goodput alone / bottleneck", x, xscale="log", ylim=(0, 1.05))
    tidy(plots[1], "goodput / goodput of TCP", x, xscale="log", yscale="log", ylim=(0.2, 5))
    tidy(plots[2], "goodput with 1% loss [Mbit/s]", x, xscale="log", yscale="log")


PICTURES: dict[str, Callable[[Any, Any], None]] = {
    "nack-atlas": atlas,
    "fec": fec,
    "storm": storm,
    "distributor-storm": distributor_storm,
    "router": router,
    "baselines": baselines,
    "twin": twin,
    "congestion": congestion,
}
"""Functions that draw a figure, by the name of the sweep."""


def ready(folder: Path) -> tuple[str, Any]:
    """Return the name and the runs of a ready sweep. UsageError for a folder without results, or of another sweep."""
    frame = read(folder)
    name = yaml.safe_load((folder / "sweep.yaml").read_text(encoding="utf-8")).get("name")
    if name not in PICTURES:
        raise UsageError(f"folder: value {str(folder)!r} is not allowed; its sweep is {name}, not one of {', '.join(PICTURES)}")
    return name, frame


def main() -> None:
    """Draw the figure of the sweep in a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="results of a ready sweep")
    parser.add_argument("--svg", type=new_file, required=True, help="file to write")
    asked = parser.parse_args()
    try:
        name, frame = ready(asked.folder)
    except McastlabError as error:
        parser.error(str(error))
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "mcastlab", "font.size": 9, "axes.titlesize": 10}
    from matplotlib import pyplot

    figure, plots = pyplot.subplots(1, 3, figsize=(12, 4.0), layout="constrained")
    PICTURES[name](frame, plots)
    legend(figure, plots)
    figure.savefig(asked.svg, metadata={"Date": None})


if __name__ == "__main__":
    main()

"""Figures of one result, by matplotlib."""

from typing import Any

from experiments.running.result import Result

__all__ = ["figure_of"]

COLOURS = {"content": "#1f5fa8", "repairs": "#d1495b", "feedback": "#2a9d4f"}


def figure_of(result: Result) -> Any:
    """A Figure: the share of receivers that are complete over time and, of a simulated run, the bytes sent over time."""
    from matplotlib.figure import Figure

    storm = result.metrics.get("storm")
    figure = Figure(figsize=(9.0 if storm else 4.5, 3.2), layout="constrained")
    plots = figure.subplots(1, 2 if storm else 1, squeeze=False)[0]
    times = sorted(row.completed_at for row in result.receivers if row.completed_at is not None)
    shares = [(number + 1) / len(result.receivers) for number in range(len(times))]
    plots[0].step([0.0, *times], [0.0, *shares], where="post", color=COLOURS["content"])
    # Two dollars would enclose a formula.
    name = result.scenario.replace("$", r"\$")
    plots[0].set(title=f"{name}: receivers complete", xlabel="time [s]", ylabel="share", ylim=(0, 1.05))
    if storm:
        width, curves = storm["load"]["bin"], storm["load"]
        for name, colour in COLOURS.items():
            rates = [octets * 8e-6 / width for octets in curves[name]]
            plots[1].step([width * place for place in range(len(rates))], rates, where="post", color=colour, label=name)
        plots[1].set(title="sent by all", xlabel="time [s]", ylabel="Mbit/s", ylim=(0, None))
        plots[1].legend(frameon=False)
    for plot in plots:
        plot.grid(alpha=0.3)
        plot.spines[["top", "right"]].set_visible(False)
    return figure

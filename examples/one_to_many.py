"""Draw the figure of the README on messaging: one publisher and 1 to 16 subscribers, by multicast and by a central broker.

    python -m examples.one_to_many --svg docs/images/one_to_many.svg

Lines are simulated, points are runs in Mininet over real sockets; mosquitto and ActiveMQ are the real programs.
"""

import argparse
from pathlib import Path

import mcastlab
from examples import at_least_one, new_file

SCENARIO = Path(__file__).parent / "one_to_many.yaml"
COUNTS = (1, 2, 4, 8, 16)
_BROKER = {"protocol": {"name": "broker", "queue": 4, "window": 8}}
SYSTEMS: dict[str, dict[str, object]] = {
    "FJM2 (multicast, NACKs)": {},
    "broker (STOMP)": {**_BROKER, "nodes": {"b": {"role": "broker"}}},
    "mosquitto": {**_BROKER, "nodes": {"b": {"run": "mosquitto"}}},
    "ActiveMQ": {**_BROKER, "nodes": {"b": {"run": "activemq"}}},
}
REAL_PROGRAMS = ("mosquitto", "ActiveMQ")
COLOURS = ("#1f5fa8", "#d1495b", "#e0922f", "#3a8f5c")
MARKERS = "osD^"

Points = dict[int, float]
"""Mean goodput of a subscriber in Mbit/s, by the number of subscribers."""


def measure(system: str, count: int, world: str) -> float:
    """Run the scenario once with `count` subscribers; return the mean goodput of a subscriber in Mbit/s."""
    changes = {**SYSTEMS[system], "topology.nodes.r.count": count}
    return float(mcastlab.run(mcastlab.load(SCENARIO, changes), on=world).metrics["messages"]["goodput_mbit_s"])


def table(counts: tuple[int, ...], emulate: bool) -> dict[str, dict[str, Points]]:
    """Return the points of all systems by world."""
    found: dict[str, dict[str, Points]] = {"sim": {}, "emu": {}}
    for system in SYSTEMS:
        if system not in REAL_PROGRAMS:
            found["sim"][system] = {count: measure(system, count, "sim") for count in counts}
        if emulate:
            found["emu"][system] = {count: measure(system, count, "emu") for count in counts}
    return found


def draw(found: dict[str, dict[str, Points]], path: Path) -> None:
    """Write the figure as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mcastlab"
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 3.5), layout="constrained")
    for system, colour, marker in zip(SYSTEMS, COLOURS, MARKERS, strict=True):
        simulated, emulated = found["sim"].get(system), found["emu"].get(system)
        if simulated:
            axis.plot([*simulated], [*simulated.values()], color=colour, label=f"{system}, simulator")
        if emulated:
            axis.plot([*emulated], [*emulated.values()], marker, color=colour, alpha=0.8, label=f"{system}, Mininet")
    axis.set(xlabel="subscribers", ylabel="goodput of each [Mbit/s]", ylim=(0, 10))
    axis.set_xscale("log", base=2)
    axis.set_xticks(COUNTS, [str(count) for count in COUNTS])
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run all simulations and emulations, print the goodput, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--svg", type=new_file, help="where to write the figure")
    parser.add_argument("--counts", type=at_least_one, nargs="+", default=list(COUNTS), help="numbers of subscribers")
    parser.add_argument("--no-emu", action="store_true", help="leave Mininet out")
    options = parser.parse_args()
    found = table(tuple(options.counts), not options.no_emu)
    for world, systems in found.items():
        for system, points in systems.items():
            print(f"{world}  {system:<24}", "  ".join(f"{count}: {rate:.2f}" for count, rate in points.items()))
    if options.svg is not None:
        draw(found, options.svg)


if __name__ == "__main__":
    main()

"""Draw the figure of the README: one file to eight receivers at increasing loss, simulated and emulated.

    python -m examples.two_worlds --svg docs/images/two_worlds.svg

The simulator runs each loss with several seeds (lines: mean; shaded: lowest to highest), Mininet once (points): the same
protocol objects over real sockets, with the loss made by the kernel.
"""

import argparse
from pathlib import Path
from typing import Any

import mcastlab
from examples import at_least_one, new_file

SCENARIO = Path(__file__).parent / "two_worlds.yaml"
LOSSES = ("0%", "1%", "2%", "5%", "10%", "20%")
PANELS = (
    ("completion_time", "completion time [s]"),
    ("repairs_sent", "repairs sent [packets]"),
    ("nacks_sent", "NACKs sent [count]"),
)


def measure(loss: str, seed: int, world: str) -> mcastlab.Result:
    """Run the scenario once at this loss."""
    return mcastlab.run(mcastlab.load(SCENARIO, {"topology.link.down.loss": loss}, seed=seed), on=world)


def table(seeds: int, emulate: bool) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the metrics of all runs by world and loss."""
    worlds = {"sim": range(1, seeds + 1)} | ({"emu": range(1, 2)} if emulate else {})
    return {
        world: {loss: [measure(loss, seed, world).metrics for seed in runs] for loss in LOSSES}
        for world, runs in worlds.items()
    }


def draw(found: dict[str, dict[str, list[dict[str, Any]]]], path: Path) -> None:
    """Write the figure as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mcastlab"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(11, 3.5), layout="constrained")
    places = [float(loss.rstrip("%")) for loss in LOSSES]
    for axis, (key, title) in zip(axes, PANELS, strict=True):
        runs = [[metrics[key] for metrics in found["sim"][loss]] for loss in LOSSES]
        axis.plot(places, [sum(values) / len(values) for values in runs], color="#1f5fa8", label="simulator, mean")
        axis.fill_between(places, [min(v) for v in runs], [max(v) for v in runs], color="#1f5fa8", alpha=0.18, linewidth=0)
        if "emu" in found:
            axis.plot(places, [found["emu"][loss][0][key] for loss in LOSSES], "o", color="#d1495b", label="Mininet")
        axis.set(xlabel="loss per receiver [%]", title=title, ylim=(0, None))
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    # Below the plots it covers no curve.
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run all simulations and emulations, print the means, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--svg", type=new_file, help="where to write the figure")
    parser.add_argument("--seeds", type=at_least_one, default=20, help="simulated runs per loss")
    parser.add_argument("--no-emu", action="store_true", help="leave Mininet out")
    options = parser.parse_args()
    found = table(options.seeds, not options.no_emu)
    for world, losses in found.items():
        for loss, runs in losses.items():
            means = "  ".join(f"{key} {sum(run[key] for run in runs) / len(runs):8.2f}" for key, _ in PANELS)
            print(f"{world}  {loss:>4}  {means}")
    if options.svg is not None:
        draw(found, options.svg)


if __name__ == "__main__":
    main()

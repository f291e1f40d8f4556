"""`mcastlab demo`: send the same file in the simulator and in Mininet, and compare."""

import typer

from experiments.output import tables
from experiments.scenario.scenario import load
from protocols.errors import UnsupportedError

__all__ = ["SCENARIO", "demo"]

SCENARIO = "demo"


def demo() -> int:
    """Run one lossy file transfer in the simulator and in Mininet, and compare.

    Where Mininet can't run, only the simulator is shown, and a line says why and what helps.
    Exit code 0: every receiver received the file; 1: not.
    """
    # Imported here, since simulator and emulation would slow down the start of other commands.
    from experiments.running.run import run

    scenario = load(SCENARIO)
    with tables.working(f"{scenario.name} in the simulator"):
        results = [run(scenario, "sim")]
    missing = None
    try:
        with tables.working(f"{scenario.name} in Mininet"):
            results.append(run(scenario, "emu"))
    except UnsupportedError as error:
        missing = str(error)
    tables.compare(results, scenario)
    if missing is not None:
        typer.echo(f"Mininet can't run here: {missing}", err=True)
    return 0 if all(result.completed for result in results) else 1

"""`mcastlab demo`: send the same file in the simulator and in Mininet, and compare."""

import json

import typer

from experiments.commands.options import Brief, Columns, Json, Wide
from experiments.output import tables
from experiments.output.printer import Printer, View
from experiments.output.working import working
from experiments.scenario.scenario import load
from protocols.errors import UnsupportedError

__all__ = ["SCENARIO", "demo"]

SCENARIO = "demo"


def demo(*, wide: Wide = False, columns: Columns = "", brief: Brief = False, as_json: Json = False) -> int:
    """Run one lossy file transfer in the simulator and in Mininet, and compare.

    Where Mininet can't run, only the simulator is shown, and a line says why and what helps.

    Exit code 0: every receiver received the file; 1: not.
    """
    # Imported here, since simulator and emulation would slow down the start of other commands.
    from experiments.running.run import run

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(tables.WORLDS.values())
    scenario, missing = load(SCENARIO), None
    with working(f"{scenario.name} in the simulator"):
        results = {"sim": run(scenario, "sim")}
    try:
        with working(f"{scenario.name} in Mininet"):
            results["emu"] = run(scenario, "emu")
    except UnsupportedError as error:
        missing = str(error)
    if as_json:
        plain = {name: result.plain() for name, result in results.items()}
        typer.echo(json.dumps({"worlds": plain, "missing": missing}))
    elif brief:
        Printer(view).verbatim(tables.brief(results))
    else:
        tables.compare(Printer(view), list(results.values()), scenario)
    if missing is not None:
        typer.echo(f"Mininet can't run here: {missing}", err=True)
    return 0 if all(result.completed for result in results.values()) else 1

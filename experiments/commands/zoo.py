"""`mcastlab zoo`: show that the rules of runs find protocols with deliberate defects."""

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.options import Brief, Columns, Jobs, Json, Wide
from experiments.output.budget import Column, Table
from experiments.output.printer import Printer, View
from experiments.output.working import working

if TYPE_CHECKING:
    from experiments.zoo.zoo import Visit

__all__ = ["zoo"]

_COLUMNS = (
    Column("mutant", rank=0),
    Column("defect", rank=4),
    Column("rules broken", rank=0),
    Column("seen in", rank=1),
    Column("as expected", rank=2),
)


def zoo(
    *,
    only: Annotated[
        list[str] | None, typer.Option(help="Run this mutant only; may be repeated.", metavar="NAME", show_default=False)
    ] = None,
    jobs: Jobs = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Run protocols with one deliberate defect each, and the protocols without, and show which rules of a run each breaks.

    Exit code 0: every mutant breaks a rule, and no protocol without a defect does; 1: not; 2: bad input; 130: interrupted.
    """
    # Imported here, since the simulator would slow down the start of other commands.
    from experiments.zoo.zoo import specimens, visit

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _COLUMNS)
    wanted = specimens(only or ())
    visits: list[Visit] = []
    with working(lambda: f"{len(visits)} of {len(wanted)} mutants and protocols were run"):
        visits.extend(visit(wanted, jobs or os.cpu_count() or 1))
    good = all(each.is_as_expected for each in visits)
    if as_json:
        typer.echo(json.dumps({"ok": good, "runs": [each.plain() for each in visits]}))
    elif brief:
        mutants = [each for each in visits if each.specimen.mutant]
        caught = sum(each.is_caught for each in mutants)
        Printer(view).verbatim(f"{caught} of {len(mutants)} mutants were caught" + ("" if good else "; NOT AS EXPECTED"))
    else:
        _show(Printer(view), visits)
    return 0 if good else 1


def _show(printer: Printer, visits: "list[Visit]") -> None:
    from experiments.zoo.observation import RULES

    rows = []
    for each in visits:
        rules = each.by_rule()
        seen = dict.fromkeys(scenario for scenario, _ in rules.values())
        verdict = "yes" if each.is_as_expected else "NO"
        rows.append([each.specimen.name, each.specimen.about, ", ".join(rules) or "none", ", ".join(seen), verdict])
    printer.table(Table(_COLUMNS, rows, "", "the first scenario in which a rule was broken"))
    printer.line()
    for rule in dict.fromkeys(rule for each in visits for rule in each.by_rule()):
        printer.line(f"{rule}: {RULES[rule]}", indent=2)

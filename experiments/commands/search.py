"""`mcastlab search`: search for random faults that violate an invariant."""

import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from experiments.commands.options import Brief, Json, ScenarioFile, Sets
from experiments.commands.text_file import write_text
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from experiments.output.working import working
from experiments.scenario.scenario import read

if TYPE_CHECKING:
    from experiments.search.search import Counterexample

__all__ = ["search_command"]


def search_command(
    *,
    scenario: ScenarioFile,
    runs: Annotated[int, typer.Option(help="Random fault plans to try.", metavar="N", min=1, max=1_000_000)] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the random plans.", metavar="N", min=0)] = 1,
    sets: Sets = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Require that every receiver receives everything, unless a host crashes.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Scenario file for a violation.  (default: NAME-violation.yaml)", metavar="FILE", show_default=False),
    ] = None,
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Try random faults in the simulator, and shrink the first plan that breaks a rule to the smallest.

    Exit code 0: no violation; 1: a violation was found and saved as a scenario that repeats it; 2: bad input.
    """
    # Imported here, since the simulator would slow down the start of other commands.
    from experiments.search.search import search

    printer = Printer(View.of(brief=brief, as_json=as_json))
    data = read(scenario, sets or ())
    file = out if out is not None else Path(f"{data.get('name', 'scenario')}-violation.yaml")
    with working(f"{counted(runs, 'run')} of {scenario.name} with random faults"):
        found = search(data, str(scenario), runs=runs, seed=seed, complete=complete)
    if found is not None:
        _save(found, file)
    again = "" if found is None else _command(found, file)
    if as_json:
        typer.echo(json.dumps(_plain(found, runs, file)))
    elif found is None:
        printer.line(f"{counted(runs, 'run')}, and nothing was broken")
    elif brief:
        printer.verbatim(f"run {found.number} broke {found.verdict.rule}; see it again: {again}")
    else:
        printer.line(f"run {found.number} broke a rule, {found.verdict.rule}: {found.verdict.what}", indent=2)
        plan = json.dumps(found.scenario["faults"])
        printer.line(f"the smallest plan, after {counted(found.tried, 'run', more='more')}: {plan}", indent=2)
        printer.verbatim(f"see it again: {again}")
    return 0 if found is None else 1


def _command(found: "Counterexample", file: Path) -> str:
    """Return the command that shows a violation again; a run checks no requests."""
    from experiments.zoo.repair_rules import REPAIR_RULES

    place = quote(str(file))
    return f"mcastlab search {place} --runs 1" if found.verdict.rule in REPAIR_RULES else f"mcastlab run {place}"


def _plain(found: "Counterexample | None", runs: int, file: Path) -> dict[str, object]:
    if found is None:
        return {"runs": runs, "rule": None}
    return {
        "runs": found.number,
        "rule": found.verdict.rule,
        "what": found.verdict.what,
        "fingerprint": found.verdict.fingerprint,
        "faults": found.scenario["faults"],
        "shrinking_runs": found.tried,
        "saved": str(file),
    }


def _save(found: "Counterexample", file: Path) -> None:
    head = f"# Breaks the rule {found.verdict.rule}: {found.verdict.what}\n# Fingerprint {found.verdict.fingerprint}\n"
    write_text("--out", file, head + yaml.safe_dump(found.scenario, sort_keys=False))

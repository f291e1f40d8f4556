"""Write the verdicts of all twin scenarios as the page `docs/fidelity.md`."""

from collections.abc import Sequence

from experiments.compare.twin.equivalence import EquivalenceTest
from experiments.compare.twin.twin_metrics import TWIN_METRICS
from experiments.compare.twin.verdict import LossDifference, TwinVerdict
from experiments.statistics.verdicts import Verdict

__all__ = ["VERDICT_WORDS", "fidelity_page"]

VERDICT_WORDS = {Verdict.EQUIVALENT: "agrees", Verdict.DIFFERENT: "DIFFERS", Verdict.NOT_SHOWN: "not shown"}
"""The verdict on a metric in tables."""

_HEAD = """# Simulator against emulation

Each scenario of `experiments/scenarios/twin` was run in the simulator and in Mininet with the same seeds and the same keyed
losses. A metric agrees when the 90 % interval of the mean paired difference lies within the margin on both sides (two one-sided
t tests at 5 %), and differs when it lies beyond the margin on one side; otherwise neither is shown, and more runs are needed.
Metrics of receivers are their mean in each run. *Lost* compares the sets of first transmissions that links lost, packet by
packet. `make twin` measures all of it and writes this page; `mcastlab twin SCENARIO.yaml` does it for one scenario.
"""


def fidelity_page(verdicts: Sequence[TwinVerdict]) -> str:
    """Render the page as Markdown: a summary, and a table of metrics per scenario."""
    lines = [_HEAD, _totals([verdict.verdict for verdict in verdicts]), ""]
    lines += ["| scenario | runs | verdict | lost: simulator, Mininet, only in one |", "|---|---|---|---|"]
    lines += [_summary(verdict) for verdict in verdicts]
    for verdict in verdicts:
        lines += ["", *_section(verdict)]
    return "\n".join(lines) + "\n"


def _totals(outcomes: Sequence[Verdict]) -> str:
    differ, open_ = outcomes.count(Verdict.DIFFERENT), outcomes.count(Verdict.NOT_SHOWN)
    rest = [f"{count} {what}" for count, what in ((differ, "differ"), (open_, "not shown")) if count]
    return "; ".join([f"{outcomes.count(Verdict.EQUIVALENT)} of {len(outcomes)} scenarios agree in everything", *rest]) + "."


def _summary(verdict: TwinVerdict) -> str:
    return (
        f"| [{verdict.scenario}](#{verdict.scenario}) | {len(verdict.seeds)} | {verdict.outcome} | {_lost(verdict.dropped)} |"
    )


def _lost(dropped: LossDifference | None) -> str:
    return "not known" if dropped is None else f"{dropped.first}, {dropped.second}, {dropped.differ}"


def _section(verdict: TwinVerdict) -> list[str]:
    lines = [f"## {verdict.scenario}", ""]
    if verdict.note:
        lines += [verdict.note, ""]
    if verdict.power is not None:
        lines += [f"{verdict.power.words}.", ""]
    lines += [f"| metric | {verdict.worlds[0]} | {verdict.worlds[1]} | difference, 90 % interval | margin | verdict |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [_row(TWIN_METRICS[key].label, found) for key, found in verdict.metrics.items()]
    if verdict.queued is not None and (verdict.queued.first or verdict.queued.second):
        lines += ["", f"Dropped by queues (simulator, Mininet, only in one): {_lost(verdict.queued)}."]
    if verdict.warnings:
        lines += ["", *(f"Warning of a run: {warning}." for warning in verdict.warnings)]
    return lines


def _row(label: str, found: EquivalenceTest | None) -> str:
    if found is None:
        return f"| {label} | - | - | a value in one world only | - | {VERDICT_WORDS[Verdict.DIFFERENT]} |"
    gap = f"{found.gap.mean:+.4g} [{found.gap.low:+.3g}, {found.gap.high:+.3g}]"
    outcome = VERDICT_WORDS[found.verdict]
    return f"| {label} | {found.first:.5g} | {found.second:.5g} | {gap} | {found.margin:.3g} | {outcome} |"

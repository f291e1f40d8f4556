"""Write the verdicts on the claims of a document as a section of `docs/seeds.md`."""

from collections.abc import Sequence
from pathlib import Path

from experiments.claims.claim import ClaimFile, World
from experiments.claims.judge import Judgement

__all__ = ["claims_section", "section_name", "with_section"]

_HEAD = """# Claims of the seed documents

The project is built from documents that make claims. Each is shown by a scenario and judged by a criterion; below a table are
the reasons where a claim does not hold, or not without a caveat. `make claims` writes this page.
"""


def section_name(claims: ClaimFile, world: World) -> str:
    """Return the name of a section between the markers of the page."""
    return claims.seed if world == "sim" else f"{claims.seed} {world}"


def claims_section(claims: ClaimFile, judgements: Sequence[Judgement], world: World) -> str:
    """Render the section as Markdown; that of Mininet has what is measured there only."""
    if world == "emu":
        judgements = [each for each in judgements if each.findings]
        lines = [f"### {claims.title} in Mininet", "", "The same claims, where Mininet can judge or show them.", ""]
    else:
        lines = [f"## {claims.title}", "", claims.about.strip(), ""]
    holds = sum(each.verdict == "holds" for each in judgements)
    on = "" if world == "sim" else f" --on {world}"
    lines += [f"{holds} of {len(judgements)} claims hold. `mcastlab claims {claims.seed} --only ID{on}` judges one.", ""]
    lines += ["| id | claim | criterion | measured | SE | verdict | scenario |", "|---|---|---|---|---|---|---|"]
    lines += [_row(each) for each in judgements]
    remarks = [each for each in judgements if each.reason]
    if remarks:
        lines += ["", *(f"* {each.id} ({each.verdict}): {each.reason}" for each in remarks)]
    return "\n".join(lines)


def _row(each: Judgement) -> str:
    numbers = "<br>".join(f"{found.what}: {found.measured:.5g} (wanted: {found.wanted})" for found in each.findings)
    errors = "<br>".join(f"{found.error:.2g}" for found in each.findings)
    verdict = each.verdict if each.verdict == "holds" else f"**{each.verdict}**"
    name = Path(each.scenario).stem
    cells = (each.id, each.claim, each.criterion, numbers or "-", errors or "-", verdict, f"[{name}](../{each.scenario})")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def with_section(text: str, seed: str, section: str) -> str:
    """Return a page with the section of a document put between its markers, or with markers at its end."""
    begin, end = f"<!-- claims {seed} -->", f"<!-- end of claims {seed} -->"
    before, found, rest = (text or _HEAD).partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    before = before if found else before.rstrip("\n") + "\n\n"
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"

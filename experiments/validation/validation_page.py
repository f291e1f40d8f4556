"""Write the validation results as the page `docs/validation.md`."""

from collections.abc import Iterable, Sequence

from experiments.validation.references import ReferenceCheck

__all__ = ["validation_page"]

_HEAD = """# Theory and measurement

Every value below was measured with the protocol machines and links of this laboratory, in the simulator, and compared with a
closed form or an exact number computed elsewhere. *Allowed* is the larger of the tolerance of the reference and four standard
errors (SE) of the measurement. `make validate` writes this page; `mcastlab validate --family F` measures one family.
"""


def validation_page(verdicts: Sequence[ReferenceCheck], effort: float) -> str:
    """Render the page as Markdown; `effort` is the fraction of the events of a full measurement."""
    good = sum(verdict.good for verdict in verdicts)
    lines = [_HEAD, f"{good} of {len(verdicts)} values agree, measured with effort {effort:g} (1 is a full measurement)."]
    for family in dict.fromkeys(verdict.family for verdict in verdicts):
        lines += ["", f"## {family}", "", *_table(verdict for verdict in verdicts if verdict.family == family)]
    return "\n".join(lines) + "\n"


def _table(verdicts: Iterable[ReferenceCheck]) -> list[str]:
    rows = ["| id | value | reference | measured | SE | allowed | verdict |", "|---|---|---|---|---|---|---|"]
    for v in verdicts:
        numbers = f"{v.reference:.5g} | {v.measured:.5g} | {v.error:.2g} | {v.allowed:.2g}"
        rows.append(f"| `{v.id}` | {v.name} | {numbers} | {'agrees' if v.good else '**differs**'} |")
    return rows

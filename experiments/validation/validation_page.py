"""Write the validation results as the page `docs/validation.md`."""

from collections.abc import Iterable, Sequence

from experiments.validation.descriptions import DESCRIPTIONS
from experiments.validation.references import ReferenceCheck

__all__ = ["validation_page"]

_HEAD = """# Theory and measurement

Every value below was measured in the simulator with the protocol machines and links of this laboratory, and compared with a
closed form or an exact value computed independently. *Allowed* is the larger of the reference's tolerance and four standard
errors (SE) of the measurement. An id has the parameters of a value: G or R receivers, loss p, blocks of k packets, n with
parity, back-off factor K; [reference.json](../tests/vectors/reference.json) has all of them, with formulas and sources.
`make validate` writes this page; `mcastlab validate --family F` measures one family.
"""


def validation_page(checks: Sequence[ReferenceCheck], effort: float) -> str:
    """Render the page as Markdown; `effort` is the fraction of the events of a full measurement."""
    good = sum(check.good for check in checks)
    lines = [_HEAD, f"{good} of {len(checks)} values agree, measured with effort {effort:g} (1 is a full measurement)."]
    for family in dict.fromkeys(check.family for check in checks):
        lines += ["", f"## {family}", "", DESCRIPTIONS[family], ""]
        lines += _table(check for check in checks if check.family == family)
    return "\n".join(lines) + "\n"


def _table(checks: Iterable[ReferenceCheck]) -> list[str]:
    rows = ["| id | value | reference | measured | SE | allowed | verdict |", "|---|---|---|---|---|---|---|"]
    for v in checks:
        numbers = f"{v.reference:.5g} | {v.measured:.5g} | {v.error:.2g} | {v.allowed:.2g}"
        rows.append(f"| `{v.id}` | {v.name} | {numbers} | {'agrees' if v.good else '**differs**'} |")
    return rows

"""Print the ten questions of CONTRIBUTING.md with the file and line of each answer.

python -m scripts.where
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SYMBOL = re.compile(r"`([\w/]+\.py):([\w.]+)`")
__all__ = ["Question", "line_of", "questions"]


@dataclass(frozen=True, slots=True)
class Question:
    """A row of the table: the question, the files linked as its answer, and the symbols as (path, dotted name)."""

    text: str
    links: list[str]
    symbols: list[tuple[str, str]]


def line_of(path: Path, name: str) -> int | None:
    """Return the line where a file defines a name such as `Link.carry`; None if it does not."""
    scope: list[ast.stmt] = ast.parse(path.read_text()).body
    line = None
    for part in name.split("."):
        node = next((node for node in scope if part in defined(node)), None)
        if node is None:
            return None
        line, scope = node.lineno, getattr(node, "body", [])
    return line


def defined(node: ast.stmt) -> list[str]:
    """Return the names that a statement defines."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def questions(page: str) -> list[Question]:
    """Return the rows of the table of questions in a Markdown page."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ") and "?" in line]
    return [Question(row[0], re.findall(r"\]\(([^)]+)\)", row[1]), SYMBOL.findall(row[2])) for row in rows if len(row) == 3]


def main() -> None:
    """Print every question and the places of its answer."""
    for question in questions((ROOT / "CONTRIBUTING.md").read_text()):
        print(question.text)
        for path, name in question.symbols:
            print(f"  {path}:{line_of(ROOT / path, name)}  {name}")


if __name__ == "__main__":
    main()

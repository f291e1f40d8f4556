"""The ten questions of CONTRIBUTING.md have answers that exist, two hops from README.md; so do symbols named in other pages."""

import re
from pathlib import Path

import pytest

from scripts.where import SYMBOL, Question, line_of, questions
from tests.tidy.tree import PACKAGES, ROOT, files, label

QUESTIONS = questions((ROOT / "CONTRIBUTING.md").read_text())
PAGES = [path for path in files() if path.suffix == ".md" and path.relative_to(ROOT).parts[0] != "tests"]


def test_there_are_ten_questions() -> None:
    assert len(QUESTIONS) == 10


def test_the_questions_are_one_hop_from_the_readme() -> None:
    assert "](CONTRIBUTING.md#ten-questions)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_an_answer_links_to_the_file_of_its_symbol(question: Question) -> None:
    assert question.symbols
    assert question.links
    assert {path for path, _ in question.symbols} & set(question.links)


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_symbols_named_in_a_page_exist(page: Path) -> None:
    named = SYMBOL.findall(page.read_text())
    wrong = [f"{path}:{name}" for path, name in named if not (ROOT / path).exists() or line_of(ROOT / path, name) is None]
    assert not wrong, f"{label(page)}: {wrong}"


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_files_named_in_a_page_exist(page: Path) -> None:
    named = re.findall(r"`([\w/]+/[\w.]+\.(?:py|yaml|txt|json))`", page.read_text())
    wrong = [
        name for name in named if name.split("/")[0] in (*PACKAGES, "tests", "docs", "scripts") and not (ROOT / name).exists()
    ]
    assert not wrong, f"{label(page)}: {wrong}"


def test_definitions_of_classes_methods_and_constants_are_located(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("A = 1\n\nclass B:\n    c: int = 2\n\n    def d(self): ...\n")
    assert [line_of(file, name) for name in ("A", "B", "B.c", "B.d", "B.e", "C")] == [1, 3, 4, 6, None, None]

"""Retired words are not used in identifiers, nor retired phrases in docstrings, comments, messages and documentation.

The words that replace them are terms of RFC 5740, of networking or of discrete-event simulation, or stand in docs/glossary.md.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import PACKAGES, ROOT, files, label, modules, parsed

CODE = (*PACKAGES, "benchmarks", "examples", "scripts")

NAMES = {
    "Crowd": "LockstepGroup",
    "Debts": "DeferredLosses",
    "Seat": "FastState",
    "Pace": "Coordinator",
    "RemoteSender": "SenderState",
    "Reception": "SenderState",
    "hearing": "the methods of SenderState",
    "NackCycle": "NackProcess",
    "Need": "MissingRange",
    "Demand": "RequestedRepairs",
    "Feedback": "ProbeResponse",
    "Outgoing": "TxObject",
    "Incoming": "RxObject",
    "Masks": "BlockBitmaps",
    "Express": "Lookahead",
    "Underway": "InFlight",
    "Leaf": "Endpoint",
    "Audience": "GroupMembers",
    "Bundle": "LinkGroup",
    "Strands": "SeparateLinks",
    "LineLink": "ImpairedLink",
    "Gate": "FaultShim",
    "Intake": "ReceiveProcessor",
    "Landing": "Arrival",
    "Cast": "Participants",
    "Troupe": "CompositeProgram",
    "Visitor": "PartTimeReceiver",
    "Oversight": "Instruments",
    "Crew": "NodeProcesses",
    "Guest": "ForeignProgram",
    "token": "expects",
    "calm": "expects_if_complete",
    "is_no_news": "FastMessage.concerned",
    "gist": "effect",
    "rouse": "wake_in_lockstep",
    "heed": "apply_to_incomplete",
    "leap": "advance_over_gap",
    "foresees": "plans_bursts",
    "foresee": "plan_bursts",
    "is_inner": "is_deferrable",
}
"""Identifiers (types, attributes, functions, modules) by exact spelling, and what to write."""

PARTS = {
    "crowd": "lockstep group",
    "crew": "node processes",
    "debt": "deferred losses",
    "dice": "rng, draws",
    "excused": "complete, or left out",
    "foresee": "plan, look ahead",
    "foreseen": "planned",
    "foresight": "lookahead",
    "manieth": "occurrence",
    "owe": "missing, deferred, expected",
    "owed": "expected",
    "owes": "has not received yet",
    "promise": "plan, guarantee",
    "promises": "plans, guarantees",
    "seat": "fast state, context",
    "troupe": "composite program",
}
"""Words that stand in no name, not even as a part of it."""

PHRASES = {
    r"\bowe[sd]?\b|\bowing\b": "is missing, is expected to have received",
    r"\bdebts?\b": "deferred losses",
    # "promised" is a term of the ledger, and a rule of the checker.
    r"\bpromises?\b": "guarantees, plans",
    r"\bexcused\b": "is complete, is left out",
    r"\bdice\b": "random numbers, random stream",
    r"\bmanieth\b": "occurrence number",
    r"\b(takes?|gets?) ((its|their|a) )?turns?\b": "name the order: first in, first out; round robin",
    r"\bforesee[sn]?\b|\bforesight\b": "look ahead, plan",
    r"\bcrowds?\b": "lockstep group; large group",
    r"\bseats?\b": "fast state",
    r"\btroupe\b": "composite program",
    r"\bcrew\b": "node processes",
    r"\bcalm\b": "complete; expects_if_complete",
    r"\bgist\b": "effect",
    r"\bhears? nothing of\b": "does not receive",
    r"\bnobody has to\b": "name what need not be done",
}
"""Retired phrases in docstrings, comments, messages and pages, and what to write."""


def words(name: str) -> list[str]:
    """Split an identifier into words: `next_owed` and `NextOwed` have the same."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def retired(name: str) -> str | None:
    """Return the replacement of an identifier; None if it is not retired."""
    if name in NAMES:
        return NAMES[name]
    return next((PARTS[word] for word in words(name) if word in PARTS), None)


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the names, attributes, arguments and definitions of a syntax tree with their lines."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield getattr(node, "lineno", 1), name


def wrong_names(path: Path) -> list[str]:
    """List the retired identifiers of a file, each at its first line."""
    found: dict[str, int] = {}
    for line, name in [(1, path.stem), *identifiers(parsed(path))]:
        found.setdefault(name, line)
    return [f"{label(path)}:{line} {name}: write {new}" for name, line in found.items() if (new := retired(name))]


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of Python source with the line of each."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield token.start[0], token.string


def wrong_phrases(place: str, text: str, first: int = 1) -> list[str]:
    """List the retired phrases in a text that begins at line `first` of `place`."""
    return [
        f"{place}:{first + text.count(chr(10), 0, match.start())} {match[0]!r}: write {new}"
        for pattern, new in PHRASES.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


PAGES = [path for path in files() if path.suffix in (".md", ".yaml") and path.relative_to(ROOT).parts[0] != "tests"]
FOLDERS = sorted({path.parent for path in modules(*CODE)})


@pytest.mark.parametrize("folder", FOLDERS, ids=label)
def test_no_retired_identifier_is_used(folder: Path) -> None:
    wrong = [line for path in modules(*CODE) if path.parent == folder for line in wrong_names(path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS, ids=label)
def test_no_retired_phrase_is_in_docstrings_comments_or_messages(folder: Path) -> None:
    paths = [path for path in modules(*CODE) if path.parent == folder]
    wrong = [
        line for path in paths for first, text in spoken(path.read_text()) for line in wrong_phrases(label(path), text, first)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_no_retired_phrase_is_in_the_documentation(page: Path) -> None:
    wrong = wrong_phrases(label(page), page.read_text())
    assert not wrong, "\n".join(wrong)


def test_retired_identifiers_are_detected_by_spelling_and_by_part() -> None:
    tree = ast.parse("class Crowd:\n    def owed_by(self, excused): return self.token\n\nnext_turn = Crowded = steam = 1\n")
    assert [name for _, name in identifiers(tree) if retired(name)] == ["Crowd", "owed_by", "excused", "token"]
    assert retired("token_bucket") is None


def test_retired_phrases_are_detected_with_their_line() -> None:
    source = '"""One.\n\nWho owes it."""\nseen = "a seat"  # foreseen\n'
    found = [line for first, text in spoken(source) for line in wrong_phrases("a.py", text, first)]
    assert [line.split(": write")[0] for line in found] == ["a.py:3 'owes'", "a.py:4 'seat'", "a.py:4 'foreseen'"]


def test_every_retired_word_has_a_replacement_that_is_not_retired() -> None:
    wrong = [new for new in NAMES.values() if re.fullmatch(r"\w+", new) and retired(new)]
    assert not wrong


def test_the_glossary_defines_each_term_once() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    terms = [term for row, definition in rows if row != "term" and not row.startswith("---") for term in row.split(", ")]
    assert len(terms) > 50
    assert sorted(set(terms)) == sorted(terms)

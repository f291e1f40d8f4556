"""Files that users see: scenarios load, links have targets, no file is huge or names the machine it was written on."""

import re
from pathlib import Path

import pytest

from experiments.scenario.scenario import load
from tests.tidy.tree import ROOT, files, label

SCENARIOS = [path for path in files() if ROOT / "experiments" / "scenarios" in path.parents and path.suffix == ".yaml"]
PAGES = [path for path in files() if path.suffix == ".md"]
LARGEST = 1_000_000
BINARY = {".pcap", ".pcapng", ".png", ".parquet", ".bin"}
# Written in pieces, so that this file passes its own test.
FOREIGN = re.compile(
    "|".join(
        ["/" + "work/", "/" + "root/", "/" + "home/", "/" + "tmp/", r"\.\./" + "shared", "index" + "-url", "find" + "-links"]
    )
)


@pytest.mark.parametrize("path", SCENARIOS, ids=label)
def test_every_scenario_loads(path: Path) -> None:
    assert load(path).digest()


def test_there_are_scenarios() -> None:
    assert SCENARIOS


def test_no_file_is_huge() -> None:
    wrong = [f"{label(path)}: {path.stat().st_size} bytes" for path in files() if path.stat().st_size > LARGEST]
    assert not wrong, "\n".join(wrong)


def test_no_file_names_the_machine_it_was_written_on() -> None:
    wrong = []
    for path in files():
        if path.suffix in BINARY:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FOREIGN.search(line):
                wrong.append(f"{label(path)}:{number}: {line.strip()[:100]}")
    assert not wrong, "\n".join(wrong)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings as GitHub spells them."""
    headings = re.findall(r"^#+ +(.+?) *$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_have_targets(page: Path) -> None:
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong, f"{label(page)}: {wrong}"

"""Captures made to cost much: memory and work of an inspection stay in proportion to the file."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.inspection.inspection import Inspection
from experiments.inspection.inspection_page import inspection_page
from experiments.inspection.inspection_tables import overview
from protocols.norm.messages import Data, Fti, Nack, Origin, Squelch
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from tests.experiments.inspection.scenes import FTI, ORIGIN, Scene

MOST_SECONDS, MOST_MEGABYTES = 3.0, 200


def symbols_far_ahead(scene: Scene) -> None:
    """NACKs for the last symbol of many blocks of 65,000: 12 bytes for a bitmap of 8 kB."""
    fti = Fti(129, 1 << 40, 1, 65_000, 0)
    scene.send(Data(ORIGIN, scene.next(), 0, 129, 0, 0, 0, 65_000, fti, b"x", 1))
    for number in range(300):
        items = tuple(Item(129, 0, number * 80 + n, 64_999, 65_000) for n in range(80))
        scene.send(Nack(2, number, 1, 7, 0, 0, (Request(FORM_ITEMS, LEVEL_SEGMENT, items),)), 2)


def data_far_ahead(scene: Scene) -> None:
    """DATA with the last symbol of ever another block."""
    for block in range(4000):
        scene.send(Data(ORIGIN, scene.next(), 0, 129, 0, block, 65_000, 65_000, None, b"x", 1))


def blocks_of_nothing(scene: Scene) -> None:
    """NACKs for ranges of blocks of an object of which nothing was sent."""
    scene.send(Data(ORIGIN, scene.next(), 0, 5, 0, 0, 0, 0, Fti(5, 1 << 26, 1, 10, 0), b"x", 1))
    for number in range(40):
        ends = tuple(Item(5, 0, block) for n in range(500) for block in (n * 10_000, n * 10_000 + 9_999))
        scene.send(Nack(2 + number, number, 1, 7, 0, 0, (Request(FORM_RANGES, LEVEL_BLOCK, ends),)), 2)


def gaps_of_thousands(scene: Scene) -> None:
    """Senders whose second message follows 9,998 missing ones."""
    for sender in range(1000):
        origin = Origin(1000 + sender, 7, 120, 4, 2)
        for sequence in (0, 9999):
            scene.send(Data(origin, sequence, 0, 5, 0, 0, 0, 0, FTI, b"x", 1))


def objects_backwards(scene: Scene) -> None:
    """Objects each older than the one before."""
    for number in range(6000):
        scene.send(Data(ORIGIN, scene.next(), 0, 5, 30_000 - number, 0, 0, 0, FTI, b"x", 1))


def many_squelches(scene: Scene) -> None:
    """A NACK for 3,000 objects, and SQUELCHes that list 8,000 others."""
    for number in range(3000):
        scene.send(Data(ORIGIN, scene.next(), 0, 5, number, 0, 0, 0, FTI, b"x", 1))
    everything = Request(FORM_RANGES, LEVEL_OBJECT, (Item(5, 0), Item(5, 2999)))
    scene.send(Nack(2, 1, 1, 7, 0, 0, (everything,)), 2)
    for _ in range(60):
        scene.send(Squelch(ORIGIN, scene.next(), 5, 0, 0, 0, 0, tuple(range(10_000, 18_000))))


def rounds_of_strangers(scene: Scene) -> None:
    """Repair rounds, each begun by another receiver."""
    scene.data(0, 0)
    wanted = (Request(FORM_ITEMS, LEVEL_SEGMENT, (Item(5, 0, 0, 0),)),)
    for receiver in range(4000):
        scene.send(Nack(2 + receiver, 1, 1, 7, 0, 0, wanted), 2)
        scene.data(0, 0)


HOSTILE: list[Callable[[Scene], None]] = [
    symbols_far_ahead,
    data_far_ahead,
    blocks_of_nothing,
    gaps_of_thousands,
    objects_backwards,
    many_squelches,
    rounds_of_strangers,
]
MEASURED = """
import resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
from experiments.inspection.inspection import inspect_capture
for path in sys.argv[1:]:
    start = time.process_time()
    inspect_capture(Path(path)).plain()
    print(path, time.process_time() - start)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1000)
"""


def test_no_message_costs_more_than_in_proportion_to_its_size(tmp_path: Path) -> None:
    paths = []
    for attack in HOSTILE:
        scene = Scene()
        attack(scene)
        paths.append(str(scene.write(tmp_path).rename(tmp_path / f"{attack.__name__}.pcap")))
    done = subprocess.run([sys.executable, "-c", MEASURED, *paths], capture_output=True, text=True, check=True, timeout=120)
    *rows, peak = done.stdout.splitlines()
    slow = {path: float(seconds) for path, seconds in map(str.split, rows) if float(seconds) >= MOST_SECONDS}
    assert not slow
    assert float(peak) < MOST_MEGABYTES


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    """A capture of an honest sender behind 1,500 others, and one receiver of each."""
    scene = Scene()
    for number in range(1500):
        scene.send(Data(Origin(1000 + number, 7, 120, 4, 2), 0, 0, 5, 0, 0, 0, 0, FTI, b"x", 1))
        nack = Request(FORM_ITEMS, LEVEL_SEGMENT, (Item(5, 0, 0, 0),))
        scene.send(Nack(9, number, 1000 + number, 7, 0, 0, (nack,)), 9)
    scene.whole()
    return scene.inspect(tmp_path_factory.mktemp("crowd"))


def test_of_many_senders_the_largest_are_analysed_and_the_others_summed(crowd: Inspection) -> None:
    plain = crowd.plain()
    assert len(plain["senders"]) == 1000
    [honest] = [sender for sender in plain["senders"] if sender["source_id"] == 1]
    assert honest["objects"][0]["complete"] is True
    assert plain["others"]["senders"] == 501
    # One DATA of each, and the NACK that follows it.
    assert plain["others"]["messages"] == 2 * 501
    assert plain["messages"] == 2 * 1500 + 8


def test_what_is_not_in_detail_is_said(crowd: Inspection) -> None:
    assert any(line.startswith("not in detail: 501 senders") for line in overview(crowd))
    page = inspection_page(crowd)
    assert "not in detail: 501 senders" in page
    assert "and 900 more senders" in page


def test_requests_beyond_the_budget_are_noticed(tmp_path: Path) -> None:
    scene = Scene()
    blocks_of_nothing(scene)
    found = scene.inspect(tmp_path)
    [notice] = [row for row in found.session.findings.notices if row.rule == "detail-limit"]
    assert notice.count > 0
    assert sum(row["nacks"] for row in found.plain()["receivers"]) == 40

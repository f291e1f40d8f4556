"""The replay in a real browser: what is drawn when, keys and buttons, reduced motion, and the layout of the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.cli import invoke
from tests.experiments.report.runs import SHARED, data_of, record
from tests.support.browser import Browser, Page, browser
from tests.support.page_checks import FAINT, OUTSIDE, OVERLAPS

pytestmark = pytest.mark.peer("chromium")
MESH = """
name: mesh
topology:
  kind: graph
  nodes: {sender: , r1: , r2: , r3: , r4: , a: {kind: router}, b: {kind: router}, c: {kind: router}}
  links:
    - {ends: [sender, a], delay: 2ms}
    - {ends: [a, b], delay: 5ms}
    - {ends: [b, c], delay: 5ms}
    - {ends: [a, c], delay: 5ms}
    - {ends: [b, r1], down: {loss: 5%}}
    - {ends: [b, r2], down: {loss: 5%}}
    - {ends: [c, r3]}
    - {ends: [c, r4]}
protocol: {name: norm, rate: 5Mbit, grtt: 50ms, robust: 5}
workload: {size: 60kB}
"""
CHAIN = """
name: chain
topology:
  kind: graph
  nodes: {sender: , s0: , g0: {kind: router}, core: {kind: router}, g1: {kind: router}, s1: , r: {count: 9}}
  links:
    - {ends: [sender, s0]}
    - {ends: [s0, g0]}
    - {ends: [g0, core], delay: 10ms}
    - {ends: [core, g1], delay: 10ms}
    - {ends: [g1, s1]}
    - {ends: [s1, r], down: {loss: 5%}}
protocol: {name: norm, rate: 5Mbit, grtt: 50ms, robust: 5}
workload: {size: 60kB}
"""
MEETING = """(() => {
  const parts = [...document.querySelectorAll('.scene rect, .scene text, .scene .node')].filter((part) => part.getBBox().width);
  const boxes = parts.map((part) => [part, part.getBoundingClientRect()]), found = [];
  boxes.forEach(([a, one], i) => boxes.slice(i + 1).forEach(([b, other]) => {
    const own = a.nextSibling === b && a.tagName === 'rect' || b.classList.contains('status') && !b.textContent;
    const beside = one.right <= other.left + 1 || other.right <= one.left + 1;
    const apart = beside || one.bottom <= other.top + 4 || other.bottom <= one.top + 4;
    if (!own && !apart) found.push(`${a.tagName} ${a.textContent} / ${b.tagName} ${b.textContent}`);
  }));
  return found;
})()"""
"""Nodes and names in the picture that overlap; a switch's name stands in its own box."""
STATUS = "[...document.querySelectorAll('.scene .status')].map((text) => text.textContent)"
INK = "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 2000, 600).data.some((part) => part > 0)"
"""Whether any packet or loss is drawn."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start a browser for all tests of this module."""
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make the pages of a star, of a graph with cycles, of a chain of routers, and of a run of many receivers."""
    found = {}
    scenarios = {"star": SHARED, "mesh": MESH, "chain": CHAIN, "many": SHARED.replace("receivers: 6", "receivers: 60")}
    for name, scenario in scenarios.items():
        folder = record(tmp_path_factory.mktemp(name), scenario, "--set", "trace=true")
        assert invoke(["report", str(folder)]) == 0
        found[name] = folder / "report.html"
    return found


@pytest.fixture
def page(chromium: Browser, pages: dict[str, Path]) -> Page:
    """Open the page of the star, its replay at the beginning."""
    return chromium.open(pages["star"])


def press(page: Page, key: str) -> None:
    """Press a key on the replay."""
    page.run(
        f"document.getElementById('stage').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', cancelable: true }}))"
    )


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("star", 390, True),
        ("star", 1400, False),
        ("mesh", 390, False),
        ("mesh", 1400, True),
        ("chain", 390, True),
        ("many", 390, False),
    ],
)
def test_nothing_overlaps_or_leaves_its_place_and_all_text_is_legible(
    chromium: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    page = chromium.open(pages[name], width=width, dark=dark)
    for moment in ("replay.seek(0)", "for (let n = 0; n < 12; n += 1) replay.step(1)", "replay.seek(Infinity)"):
        page.run(f"{{ {moment} }}")
        assert page.run(OVERLAPS) == []
        assert page.run(MEETING) == []
        assert page.run(OUTSIDE) == []
        assert page.run(FAINT) == []
    assert page.console_errors() == []


def test_a_step_goes_to_the_next_loss_and_shows_who_lost(page: Page, pages: dict[str, Path]) -> None:
    replay = data_of(pages["star"])["replay"]
    categories = [category["name"] for category in replay["categories"]]
    time, _, _, text, _ = next(event for event in replay["events"] if categories[event[1]] == "loss")
    assert page.run("document.querySelectorAll('.scene .ring[visibility=visible]').length") == 0
    page.run(f"document.querySelector('.desk select').value = '{categories.index('loss')}'")
    page.run("document.querySelector('.desk select').dispatchEvent(new Event('change'))")
    press(page, "n")
    assert page.run("replay.state.time") == pytest.approx(time)
    assert page.run("document.querySelector('.now p').textContent") == text
    assert any(status.startswith("lost ") for status in page.run(STATUS))
    assert page.run(INK)


def test_stepping_back_returns_to_the_event_before(page: Page) -> None:
    times = []
    for key in "nnnppp":
        press(page, key)
        times.append(page.run("replay.state.time"))
    assert times[0] < times[1] < times[2]
    assert times[3:5] == [times[1], times[0]]


def test_packets_are_under_way_between_sending_and_reception(page: Page, pages: dict[str, Path]) -> None:
    packet = data_of(pages["star"])["replay"]["packets"][20]
    page.run(f"replay.seek({packet[0] + packet[5][1] / 2e6})")
    labels = page.run("replay.inFlight(replay.state.time).map((packet) => packet[4])")
    assert packet[4] in labels
    assert page.run(INK)


def test_a_kind_that_is_switched_off_is_not_drawn(page: Page) -> None:
    page.run("replay.seek(0.05)")
    assert page.run(INK)
    page.run("document.querySelectorAll('.kinds input').forEach((box) => box.click())")
    assert not page.run(INK)


def test_space_plays_and_pauses(page: Page) -> None:
    press(page, " ")
    page.wait("replay.state.time > 0.001")
    assert page.run("document.querySelector('.play').textContent") == "Pause"
    press(page, " ")
    assert page.run("document.querySelector('.play').textContent") == "Play"
    stopped = page.run("replay.state.time")
    page.run("new Promise((done) => setTimeout(done, 60))")
    assert page.run("replay.state.time") == stopped


def test_keys_change_the_speed_and_go_to_both_ends(page: Page) -> None:
    before = page.run("replay.state.speed")
    press(page, "+")
    assert page.run("replay.state.speed") == before + 1
    press(page, "End")
    end = page.run("replay.state.time")
    assert "complete" in page.run(STATUS)
    press(page, "Home")
    assert page.run("replay.state.time") < end
    assert "complete" not in page.run(STATUS)


def test_keys_outside_the_replay_scroll_the_page(page: Page) -> None:
    page.run("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }))")
    assert page.run("replay.state.playing") is False


def test_with_reduced_motion_the_replay_goes_from_event_to_event(chromium: Browser, pages: dict[str, Path]) -> None:
    page = chromium.open(pages["star"])
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    # The page learns of the change when it draws its next frame, and then pauses.
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    replay = data_of(pages["star"])["replay"]
    times = {event[0] for event in replay["events"] if replay["categories"][event[1]]["notable"]}
    begin = page.run("replay.state.time")
    press(page, " ")
    page.wait(f"replay.state.time !== {begin}")
    assert page.run("replay.state.playing")
    assert page.run("replay.state.time") in times


def test_a_click_on_the_loss_map_moves_the_replay_there(page: Page) -> None:
    page.run(
        "{ const lane = document.querySelector('#losses-rows svg'), box = lane.getBoundingClientRect();"
        " lane.dispatchEvent(new MouseEvent('click', { clientX: box.left + box.width / 2 })); }"
    )
    assert page.run("replay.state.time") == pytest.approx(page.run("DATA.losses.time.extent") / 2, rel=0.02)
    assert page.run("document.getElementById('losses-told').textContent").startswith("r1, ")


def test_the_loss_map_changes_between_time_and_order(page: Page) -> None:
    axis = "document.querySelector('#losses-rows .axis em').textContent"
    assert page.run(axis) == "time [s]"
    page.run("document.querySelectorAll('#losses-choice button')[1].click()")
    assert page.run(axis) == "packets sent to the group, in order"


def test_the_script_names_no_kind_of_any_protocol(pages: dict[str, Path]) -> None:
    from experiments.report.page_skeleton import asset

    for kind in ("nack", "flush", "parity", "squelch", 'data"'):
        assert kind not in asset("replay.js").lower()
        assert kind not in asset("run_report.js").lower()

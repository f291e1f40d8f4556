"""The page in a real browser: figures, console, filters, and no network requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser, Page, browser

pytestmark = pytest.mark.peer("chromium")
DRAWN = (
    "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg .xy, .main-svg .cartesianlayer'))"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start a browser for all tests of this module."""
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def page(chromium: Browser, report: Path) -> Page:
    """Open the report in a window of laptop size."""
    return chromium.open(report)


def count(page: Page, table: str) -> str:
    """Return the text with the row count of a table."""
    text = page.run(f"document.querySelector('#table-{table} .count').textContent")
    assert isinstance(text, str)
    return text


def write_filter(page: Page, table: str, column: int, text: str) -> None:
    """Enter text into the filter of a column."""
    page.run(
        f"{{ const box = document.querySelectorAll('#table-{table} th input')[{column}]; box.value = '{text}'; "
        "box.dispatchEvent(new Event('input')); }"
    )


def choose(page: Page, control: int, place: int) -> None:
    """Choose value number `place` of a control of the explorer."""
    page.run(
        f"{{ const box = document.querySelectorAll('#controls select')[{control}]; box.selectedIndex = {place}; "
        "box.dispatchEvent(new Event('change')); }"
    )


def test_every_figure_is_drawn_and_the_console_is_empty(page: Page) -> None:
    assert page.run("document.querySelectorAll('.plot').length") >= 10
    page.wait(DRAWN)
    assert page.console_errors() == []


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1440, True)])
def test_the_page_fits_small_screens_and_dark_mode(chromium: Browser, report: Path, width: int, dark: bool) -> None:
    other = chromium.open(report, width=width, dark=dark)
    other.wait(DRAWN)
    assert other.run("document.documentElement.scrollWidth") <= width
    assert other.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert other.console_errors() == []


def test_the_button_switches_to_dark_mode_and_figures_follow(page: Page) -> None:
    colour = "getComputedStyle(document.querySelector('#plot-effects .xtick text')).fill"
    before = page.run(colour)
    page.run("document.getElementById('theme').click()")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    page.wait(f"{colour} !== '{before}'")
    page.run("document.getElementById('theme').click()")
    page.wait(f"{colour} === '{before}'")


@pytest.mark.parametrize(("column", "text", "shown"), [(0, "> 20", 12), (0, "10..20", 24), (1, "srm", 18), (3, "goodput", 12)])
def test_filters_keep_the_matching_rows(page: Page, column: int, text: str, shown: int) -> None:
    write_filter(page, "points", column, text)
    assert count(page, "points") == f"{shown} of 36 rows"
    assert page.run("document.querySelectorAll('#table-points tbody tr').length") == shown
    write_filter(page, "points", column, "")
    assert count(page, "points") == "36 of 36 rows"


def test_a_click_on_a_heading_sorts_and_a_second_reverses(page: Page) -> None:
    first = "Number(document.querySelector('#table-points tbody tr td').textContent)"
    heading = "document.querySelector('#table-points th button').click()"
    page.run(heading)
    assert page.run(first) == 10
    page.run(heading)
    assert page.run(first) == 50


def test_the_explorer_draws_the_selection(page: Page) -> None:
    title = "document.querySelector('#plot-explore .ytitle').textContent"
    assert page.run(title) == "completion time [s]"
    choose(page, 0, 1)
    page.wait(f"{title} === 'goodput [Mbit/s]'")
    lines = "document.querySelectorAll('#plot-explore .scatterlayer .trace .lines path.js-line').length"
    both = page.run(lines)
    choose(page, 2, 0)
    page.wait(f"{lines} < {both}")
    assert page.console_errors() == []


def test_the_page_can_be_printed(page: Page) -> None:
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type/Page/") >= 3
    assert page.console_errors() == []

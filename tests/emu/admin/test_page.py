"""The page of a registry in headless Chromium."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.emu.admin.served import GROUP, Tunnel, admin
from tests.support.browser import Browser, Page, browser
from tests.support.page_checks import FAINT, OUTSIDE, OVERLAPS

EVIL = "\"><img src=x onerror=\"document.title='stolen'\"><script>document.title='stolen'</script>"
LEASE = 4.0
ROW = "[...document.querySelectorAll('tr.tunnel')].find((each) => each.textContent.includes({!r}))"
BAD = "document.querySelectorAll('main img, main script, #news img, #news script').length"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start a browser for the tests of this module."""
    with browser() as made:
        yield made


def with_tunnels(url: str, tunnels: list[Tunnel], look: Callable[[], None]) -> None:
    """Call `look` in a thread of its own, while tunnels are in the list of a registry."""

    async def main() -> None:
        tasks = [asyncio.create_task(tunnel.serve()) for tunnel in tunnels]
        await asyncio.to_thread(look)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(main())


def check(page: Page, url: str) -> None:
    """Check the layout of a page, and that it reported no error."""
    assert page.run(OVERLAPS) == []
    assert page.run(OUTSIDE) == []
    assert page.run(FAINT) == []
    assert page.run("document.title") == "mcastlab admin"
    assert page.run(BAD) == 0
    assert page.console_errors(url) == []


@pytest.mark.peer("chromium")
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1400, False)])
def test_the_page_shows_a_tunnel_that_comes_its_rate_and_its_death(chromium: Browser, width: int, dark: bool) -> None:
    with admin("--lease", f"{LEASE}s") as url:
        page = chromium.open(url, width, dark=dark)
        assert page.run("document.getElementById('status').textContent") == "0 tunnels, 0 sites"
        tunnels = [Tunnel(url, name, site, 7000 + site) for name, site in (("berlin", 1), ("rome", 2), (EVIL, 3))]

        def look() -> None:
            row = ROW.format("berlin")
            page.wait(f"{row} && {row}.textContent.includes('kbit/s')")
            text = page.run(f"{row}.innerText")
            assert re.search(r"127\.0\.0\.1:7001, group 239\.1\.2\.3:6003", text)
            assert 7.0 < float(re.search(r"([0-9.]+) kbit/s", text)[1]) < 9.0  # type: ignore[index]
            assert "25 of 100" in text
            assert EVIL in page.run("document.body.innerText")
            page.wait("document.querySelectorAll('#drawing path.flows').length === 3")
            assert page.run("document.querySelectorAll('#drawing circle').length") == 3
            check(page, url)

        with_tunnels(url, tunnels, look)
        page.wait("document.getElementById('status').textContent === '0 tunnels, 0 sites'")
        with httpx.Client(base_url=url, trust_env=False) as http:
            http.post("/nodes", json={"name": "mortal", "site": 1, "port": 7000, "group": GROUP})
            born = time.monotonic()
            row = ROW.format("mortal")
            page.wait(row)
            assert time.monotonic() - born < 1.0
            page.wait(f"{row} && {row}.textContent.includes('silent for')")
            page.wait(f"!{row}")
            assert time.monotonic() - born < LEASE + 1.0
        assert "mortal is silent, and no longer in the list" in page.run("document.getElementById('events').innerText")
        check(page, url)


@pytest.mark.peer("chromium")
def test_a_tunnel_is_paused_and_resumed_by_the_page(chromium: Browser) -> None:
    with admin() as url:
        page = chromium.open(url)
        tunnels = [Tunnel(url, name, site, 7000 + site) for name, site in (("berlin", 1), ("rome", 2))]

        def look() -> None:
            row = ROW.format("rome")
            page.wait(f"{row} && {ROW.format('berlin')}")
            for word, paused in (("paused", True), ("running", False)):
                page.run(f"{row}.querySelector('button').click()")
                page.wait(f"{row}.textContent.includes({word!r})")
                end = time.monotonic() + 3.0
                while [node.paused for tunnel in tunnels for node in tunnel.told[-1][1]] != [paused, paused]:
                    assert time.monotonic() < end
                    time.sleep(0.02)
            check(page, url)

        with_tunnels(url, tunnels, look)


@pytest.mark.peer("chromium")
@pytest.mark.parametrize("width", [390, 1400])
def test_many_tunnels_are_drawn_by_site(chromium: Browser, width: int) -> None:
    with admin() as url, httpx.Client(base_url=url, trust_env=False) as http:
        for number in range(45):
            values = {"name": f"a tunnel with a long name {number}", "site": number % 15, "port": 7000 + number, "group": GROUP}
            http.post("/nodes", json=values)
        page = chromium.open(url, width)
        page.wait("document.querySelectorAll('tr.tunnel').length === 45")
        assert page.run("document.querySelectorAll('#drawing circle').length") == 15
        assert page.run("document.querySelectorAll('#drawing path').length") == 15 * 14 / 2
        check(page, url)


@pytest.mark.peer("chromium")
def test_the_page_says_when_the_registry_has_ended(chromium: Browser) -> None:
    with admin() as url:
        page = chromium.open(url)
    page.wait("document.getElementById('status').textContent === 'the registry does not answer'")

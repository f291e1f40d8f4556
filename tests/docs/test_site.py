"""The documentation site builds without warnings, its links have targets, and its pages load nothing from the network."""

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.browser import find_chromium
from tests.support.needs import missing
from tests.tidy.tree import ROOT

pytestmark = pytest.mark.timeout(300)
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "audio": "src", "video": "src"}
"""Elements whose resources a browser loads, and the attribute with the address."""


@dataclass
class Page(HTMLParser):
    """Collect the anchors of a page, its links, and the resources that a browser loads for it."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the identifiers and addresses of an element."""
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") != "canonical" and "href" in given:
            self.loaded.append(given["href"])
        elif tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])


def external(address: str) -> bool:
    """Return whether an address points to another host."""
    return bool(urlsplit(address).scheme or urlsplit(address).netloc) and not address.startswith("data:")


def read_site(folder: Path) -> dict[Path, Page]:
    """Parse all pages of a built site, by resolved path."""
    return {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}


def broken_links(pages: dict[Path, Page]) -> list[str]:
    """List the links whose target file or anchor is missing from the site."""
    wrong = []
    for page in pages.values():
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if external(link) or link.startswith("data:"):
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path.resolve()
            anchors = pages[target].anchors if target in pages else set()
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in anchors):
                wrong.append(f"{page.path.name}: {link}")
    return sorted(wrong)


def require(name: str) -> None:
    """Skip a test whose tool is missing; fail it with CI=true."""
    if reason := missing(name):
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to have everything: {reason}", pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site from the repository's pages and return its folder."""
    require("docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Parse the pages of the built site."""
    return read_site(site)


def test_every_link_of_the_site_has_a_target(pages: dict[Path, Page]) -> None:
    assert len(pages) > 50
    wrong = broken_links({path: page for path, page in pages.items() if page.path.name != "404.html"})
    assert not wrong, "\n".join(wrong)


def test_the_site_loads_nothing_from_the_network(site: Path, pages: dict[Path, Page]) -> None:
    wrong = [f"{page.path.name}: {address}" for page in pages.values() for address in page.loaded if external(address)]
    sheets = [path for path in site.rglob("*.css") if "url(http" in path.read_text() or "@import" in path.read_text()]
    assert not wrong, "\n".join(wrong)
    assert not sheets, "\n".join(map(str, sheets))


def test_the_reference_shows_docstrings(site: Path) -> None:
    text = (site / "reference" / "contract.html").read_text()
    assert 'id="protocols.machine.Ports.send"' in text


def test_the_reference_has_every_public_name_of_the_package(site: Path) -> None:
    tree = ast.parse((ROOT / "mcastlab" / "__init__.py").read_text())
    (names,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    shown = Page(site / "reference" / "api.html").anchors
    assert [name for name in names if name[0] != "_" and f"mcastlab.{name}" not in shown] == []


def test_search_works_on_pages_opened_from_a_folder(site: Path, tmp_path: Path) -> None:
    require("chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", f"--user-data-dir={tmp_path}"]
    address = f"{(site / 'index.html').as_uri()}?q=suppression"
    done = subprocess.run(
        [find_chromium() or "", *options, "--dump-dom", address], capture_output=True, text=True, timeout=250, check=False
    )
    assert re.search(r"\d+ matching documents", done.stdout), done.stderr[-2000:]


def test_console_blocks_are_shown_as_code(site: Path) -> None:
    assert "console needs=" not in "".join(path.read_text() for path in site.glob("*.html"))


def test_a_broken_link_is_detected(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="#top"></a><a href="b.html#no"></a><a href="c.html"></a>')
    (tmp_path / "b.html").write_text('<a href="a.html#top"></a><script src="https://elsewhere.example/x.js"></script>')
    pages = read_site(tmp_path)
    assert broken_links(pages) == ["a.html: b.html#no", "a.html: c.html"]
    assert [address for page in pages.values() for address in page.loaded if external(address)] == [
        "https://elsewhere.example/x.js"
    ]

"""Add pages for files outside docs/ to the mkdocs site, and point links at them (a hook of mkdocs).

Pages of docs/ link to files of the repository (`../protocols/machine.py`), which a code host shows and a site of docs/ alone
lacks. Every linked source file becomes a page with its text, every linked folder a page with its list of files, and the
Markdown files of the root pages like those of docs/. mkdocs.yml names this file under `hooks`.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {
    "README.md": "tour.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
}
"""Markdown files of the root and the pages they become."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json", ".md": "markdown"}
CONSOLE = re.compile(r"^```console .*$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_HIDDEN = "---\nsearch:\n  exclude: true\n---\n\n"


def origin(src_uri: str) -> str:
    """Return the repository path of the file from which a page of the site is made."""
    return next((name for name, page in ROOT_PAGES.items() if page == src_uri), f"docs/{src_uri}")


def resolve(link: str, home: str) -> tuple[str, str] | None:
    """Return repository path and anchor of a relative link in the file `home`; None for other links."""
    path, _, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", link):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(home), path)), anchor


def page_of(path: str) -> str:
    """Return the page or file of the site that shows a file of the repository."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"source/{path}.md"


def linked(text: str, home: str) -> set[str]:
    """Return the linked repository paths of a Markdown text that lie outside docs/ and are no root pages."""
    targets = {found[0] for match in LINK.finditer(text) if (found := resolve(match[2], home))}
    return {path for path in targets if page_of(path).startswith("source/") and (ROOT / path).exists()}


def source_page(path: str) -> str:
    """Return the Markdown page of a file or a folder of the repository."""
    target = ROOT / path
    if target.is_dir():
        names = sorted(entry.name for entry in target.iterdir() if entry.suffix in LANGUAGES)
        return "\n".join([f"{_HIDDEN}# {path}/\n", *(f"- [{name}]({target.name}/{name}.md)" for name in names), ""])
    fence, language = "`" * 8, LANGUAGES.get(target.suffix, "text")
    return f'{_HIDDEN}# {path}\n\n{fence} {{.{language} linenums="1"}}\n{target.read_text()}\n{fence}\n'


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the root's Markdown files and of all source files that pages link to."""
    texts = {file.src_uri: file.content_string for file in files if file.src_uri.endswith(".md")}
    for name, page in ROOT_PAGES.items():
        texts[page] = (ROOT / name).read_text()
        files.append(File.generated(config, page, content=texts[page]))
    wanted = {path for page, text in texts.items() for path in linked(text, origin(page))}
    folders = {path for path in wanted if (ROOT / path).is_dir()}
    wanted |= {f"{path}/{entry.name}" for path in folders for entry in (ROOT / path).iterdir() if entry.suffix in LANGUAGES}
    for path in sorted(wanted):
        files.append(File.generated(config, page_of(path), content=source_page(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point the links of a page at pages of the site, and drop the attributes of console blocks, which only tests use."""
    here = page.file.src_uri
    if here.startswith("source/") or not here.endswith(".md"):
        return markdown

    def replace(match: "re.Match[str]") -> str:
        found = resolve(match[2], origin(here))
        if not found or not (ROOT / found[0]).exists():
            return match[0]
        target = posixpath.relpath(page_of(found[0]), posixpath.dirname(here))
        anchor = f"#{found[1]}" if found[1] and not page_of(found[0]).startswith("source/") else ""
        return f"{match[1]}{target}{anchor}{match[3]}"

    return LINK.sub(replace, CONSOLE.sub("```console", markdown))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Point the links of a notebook, which mkdocs leaves unchanged, at pages of the site."""
    return (
        re.sub(r'href="([\w./-]+)\.md(#[^"]*)?"', r'href="\1.html\2"', html) if page.file.src_uri.endswith(".ipynb") else html
    )

"""The files of a page: its own, and those that all pages share."""

from pathlib import Path
from typing import Final

from fastapi import FastAPI
from fastapi.responses import FileResponse

__all__ = ["add_page"]

SHARED: Final = tuple(Path(__file__).with_name(name) for name in ("base.css", "format.js"))
"""Colours and the look of text and tables; and a script for numbers as text, tables and charts."""
_SERVED: Final = (".html", ".css", ".js")


def add_page(app: FastAPI, folder: Path) -> None:
    """Serve the files of a folder by their names, index.html at /, and those that all pages share."""
    for file in (*sorted(folder.iterdir()), *SHARED):
        if file.suffix in _SERVED:
            _add(app, "/" if file.name == "index.html" else f"/{file.name}", file)


def _add(app: FastAPI, path: str, file: Path) -> None:
    def page() -> FileResponse:
        return FileResponse(file)

    app.add_api_route(path, page, methods=["GET"], response_model=None, include_in_schema=False)

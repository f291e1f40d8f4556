"""The part of a page that all pages share: numbers as text, tables and charts."""

from pathlib import Path
from typing import Final

__all__ = ["FORMAT"]

FORMAT: Final = Path(__file__).with_name("format.js")
"""A script; all its text goes through textContent, since names come from the network."""

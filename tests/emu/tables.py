"""Tables that programs write between two marks of a page of the documentation."""

import sys
from pathlib import Path

__all__ = ["write_table"]


def write_table(table: str, mark: str, page: Path | None) -> None:
    """Put a table between "<!-- MARK -->" and "<!-- /MARK -->" of a page; without one, print it."""
    if page is None:
        sys.stdout.write(f"{table}\n")
        return
    before, begin, rest = page.read_text().partition(f"<!-- {mark} -->")
    _, end, after = rest.partition(f"<!-- /{mark} -->")
    page.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}")

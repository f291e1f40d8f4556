"""docs/seeing.md and docs/fjm2.md name every decision that machines write into traces."""

import re

from tests.tidy.tree import ROOT, modules


def test_every_decision_of_a_trace_is_described() -> None:
    named = re.compile(r"trace\(\s*\"([^\"]+)\"")
    decisions = {name for path in modules("protocols") for name in named.findall(path.read_text(encoding="utf-8"))}
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("seeing.md", "fjm2.md"))
    assert "nack_backoff" in decisions
    assert not [name for name in decisions if f"`{name}`" not in pages]

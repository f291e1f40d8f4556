"""The loss model that docs/channels.md adds step by step works as the page says."""

import re
from typing import Annotated, Any

from pydantic import Discriminator, TypeAdapter

from protocols.rng import extend, key_of
from tests.tidy.tree import ROOT
from topologies import channels

PAGE = (ROOT / "docs" / "channels.md").read_text(encoding="utf-8")
KEY = key_of(1, "loss", "s1", "r")


def added() -> dict[str, Any]:
    """Return the names of channels.py, with those of the page."""
    names = dict(vars(channels))
    sampler, model = re.findall(r"^```python\n(.*?)^```", PAGE.partition("### Adding a loss model")[2], re.M | re.S)
    for number, block in enumerate((sampler, model)):
        exec(compile(block, f"docs/channels.md, block {number}", "exec"), names)
    return names


def test_the_added_model_is_taken_from_a_scenario_once_it_is_in_the_union() -> None:
    kind = added()["Outages"]
    union: Any = Annotated[channels.Channel | kind, Discriminator("model")]
    assert TypeAdapter(union).validate_python({"model": "outages", "p": "5%"}) == kind(p=0.05)


def test_the_added_model_loses_the_same_packets_on_a_group_and_on_its_single_links() -> None:
    channel = added()["Outages"](p=0.3)
    group, single = channel.group(KEY, 12), [channel.link(extend(KEY, member)) for member in range(12)]
    for identity in [*range(0, 40_000, 100), *range(0, 2000, 100), None, None]:
        assert list(group.losers(identity)) == [member for member, link in enumerate(single) if link.lost(identity)]
    fates = [len(group.losers(identity << 8)) for identity in range(100_000, 101_000)]
    # 12,000 draws: a standard error of 0.4 %.
    assert abs(sum(fates) / 12_000 - 0.3) < 0.02

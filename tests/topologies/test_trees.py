"""Distribution trees: shortest paths, shared, static; scope by TTL."""

from typing import Any

import pytest

from protocols.errors import ConfigError
from topologies.generators import Inline
from topologies.spec import Topology
from topologies.trees import group_tree, in_scope, next_hops

SQUARE = ["a-s1", "s1-s2", "s2-s3", "s3-s4", "s4-s1", "s2-b", "s3-c", "s4-d"]
"""Four switches in a ring, a host on each."""


def topology(links: list[str], nodes: dict[str, Any] | None = None, slow: str = "", **multicast: Any) -> Topology:
    """Build a topology of links like a-b; the one called `slow` has a delay of 10 ms."""
    written = [{"ends": link.split("-"), "delay": "10ms" if link == slow else "1ms"} for link in links]
    names = dict.fromkeys(end for link in links for end in link.split("-"))
    return Inline.model_validate(
        {"nodes": {name: (nodes or {}).get(name, {}) for name in names}, "links": written, "multicast": multicast}
    ).build()


def links_of(tree: dict[str, tuple[str, ...]]) -> set[str]:
    """Return the links of a tree as near-far."""
    return {f"{near}-{far}" for near, below in tree.items() for far in below}


def test_shortest_paths_by_hops_or_by_delay() -> None:
    by_hops, by_delay = (topology(SQUARE, slow="s1-s2", metric=metric) for metric in ("hops", "delay"))
    assert links_of(group_tree(by_hops, "s1", ["b"])) == {"s1-s2", "s2-b"}
    assert links_of(group_tree(by_delay, "s1", ["b"])) == {"s1-s4", "s4-s3", "s3-s2", "s2-b"}
    assert next_hops(by_hops, "s1")["b"] == "s2"
    assert next_hops(by_delay, "s1")["b"] == "s4"


def test_a_shared_tree_is_one_for_all_senders() -> None:
    shared = topology(SQUARE, tree="shared", core="s3")
    hosts = ["a", "b", "c", "d"]
    used = [links_of(group_tree(shared, root, [name for name in hosts if name != root])) for root in hosts]
    # Without regard to direction, all use the same links between switches.
    between = [{frozenset(link.split("-")) for link in links if link.count("s") == 2} for links in used]
    assert all(links <= between[0] | {frozenset(("s1", "s2"))} for links in between)
    assert len(frozenset.union(*map(frozenset, between))) == 3


def test_a_static_tree_is_the_links_given() -> None:
    links = [["a", "s1"], ["s1", "s4"], ["s4", "s3"], ["s3", "s2"], ["s2", "b"], ["s3", "c"], ["s4", "d"]]
    static = topology(SQUARE, tree=links)
    assert links_of(group_tree(static, "a", ["b"])) == {"a-s1", "s1-s4", "s4-s3", "s3-s2", "s2-b"}


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"tree": "shared"}, "multicast.core: None is not allowed"),
        ({"core": "s1"}, "multicast.core: 's1' is not allowed; required with tree shared and not"),
        ({"tree": "shared", "core": "a"}, "multicast.core: 'a' is not allowed; a switch or router"),
        ({"tree": [["s1", "c"]]}, "multicast.tree: s1-c is not allowed; there is no such link"),
        (
            {"tree": [["s1", "s2"], ["s2", "s3"], ["s3", "s4"], ["s4", "s1"]]},
            "multicast.tree: s4-s1 is not allowed; it closes a loop",
        ),
        ({"tree": [["s1", "s2"]]}, "multicast.tree: 'a' is not on it"),
    ],
)
def test_bad_rules_name_their_key(rules: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        topology(SQUARE, **rules)


def test_a_ttl_ends_at_routers_and_not_at_switches() -> None:
    nodes = {"g1": {"kind": "router"}, "g2": {"kind": "router"}}
    line = topology(["a-s1", "s1-g1", "g1-s2", "s2-g2", "g2-s3", "s1-b", "s2-c", "s3-d"], nodes)
    assert [in_scope(line, "a", ttl) for ttl in (1, 2, 3)] == [["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]]

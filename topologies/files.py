"""Topology files: YAML and JSON (in the form of scenarios, or networkx' node-link form) and GraphML.

All are converted to plain values of `kind: graph`, so that a scenario holds the network itself and not a file name.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import yaml

from protocols.errors import ConfigError, UsageError
from topologies.inline import NODE_LIMIT
from topologies.input_file import read_text
from topologies.strict_yaml import parse_yaml

__all__ = ["FORMATS", "read_topology"]

_SIDES = ("down", "up")


def read_topology(path: Path) -> dict[str, Any]:
    """Read a topology file, in the format of its suffix, as plain values of `kind: graph`.

    Raises UsageError if the file can't be read, ConfigError for its contents; the message is one line with the file name.
    """
    reader = FORMATS.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"{path}: {path.suffix!r} is not a known file type; allowed are {', '.join(FORMATS)}")
    try:
        data = reader(read_text(path))
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deeply") from error
    except (yaml.YAMLError, nx.NetworkXError, SyntaxError, TypeError, ValueError, ConfigError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from error
    return {"kind": "graph", **data}


def _yaml(text: str) -> dict[str, Any]:
    return _plain(parse_yaml(text))


def _json(text: str) -> dict[str, Any]:
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        return _plain(data)
    links = data.get("links", data.get("edges"))
    if not isinstance(links, list):
        raise ConfigError("has a list of nodes but no list of links or edges")
    directed, parallel = (_flag(data, key) for key in ("directed", "multigraph"))
    _count(data["nodes"])
    nodes: dict[str, dict[str, Any]] = {}
    for node in _records(data["nodes"], "nodes"):
        name = _taken(node, "id")
        if name in nodes:
            raise ConfigError(f"node {name}: is listed twice")
        nodes[name] = node
    edges = [(_taken(link, "source"), _taken(link, "target"), link) for link in _records(links, "links")]
    if parallel:
        edges = [(near, far, {k: v for k, v in link.items() if k != "key"}) for near, far, link in edges]
    return {"nodes": nodes, "links": _links(edges, directed)}


def _flag(data: Mapping[str, Any], key: str) -> bool:
    value = data.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{key}: value {value!r} is not allowed; true or false")
    return value


def _records(items: Sequence[Any], key: str) -> Iterator[dict[str, Any]]:
    """Yield copies of the records of nodes or links. ConfigError for what is no mapping."""
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise ConfigError(f"{key}.{number}: value {item!r} is not allowed; it should be a mapping of keys to values")
        yield dict(item)


def _taken(record: dict[str, Any], key: str) -> str:
    """Remove a name from the record of a node or link and return it."""
    if key not in record:
        raise ConfigError(f"{record} has no {key!r}")
    return str(record.pop(key))


def _plain(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict) or not {"nodes", "links"} <= data.keys():
        raise ConfigError("a topology is a mapping with nodes and links")
    if isinstance(data["nodes"], Mapping):
        _count(data["nodes"])
    return data


def _count(nodes: Any) -> None:
    if len(nodes) > NODE_LIMIT:
        raise ConfigError(
            f"lists {len(nodes)} nodes one by one, and {NODE_LIMIT} is the limit; write equal leaves as one node with a count"
        )


def _graphml(text: str) -> dict[str, Any]:
    graph = nx.parse_graphml(text)
    _count(graph)
    nodes = {str(name): dict(attributes) for name, attributes in graph.nodes(data=True)}
    edges = ((str(near), str(far), {k: v for k, v in data.items() if k != "id"}) for near, far, data in graph.edges(data=True))
    return {"nodes": nodes, "links": _links(edges, graph.is_directed())}


def _links(edges: Iterable[tuple[str, str, dict[str, Any]]], directed: bool) -> list[dict[str, Any]]:
    """Return edges as links; in a directed graph two opposite edges are the directions of one link."""
    if not directed:
        return [{"ends": [near, far], **_nested(attributes)} for near, far, attributes in edges]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for near, far, attributes in edges:
        if near == far:
            raise ConfigError(f"link {near}-{far}: joins a node to itself")
        ends, side = ((far, near), "up") if (far, near) in found else ((near, far), "down")
        link = found.setdefault(ends, {"ends": list(ends)})
        if side in link:
            raise ConfigError(f"link {near}-{far}: is given twice")
        link[side] = _nested(attributes)
    for (near, far), link in found.items():
        if "up" not in link:
            raise ConfigError(f"link {near}-{far}: has no opposite direction {far}-{near}")
    return list(found.values())


def _nested(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a link, with `down_loss` as `loss` of `down`, since GraphML has no nested attributes."""
    link: dict[str, Any] = {}
    for key, value in attributes.items():
        side, bar, rest = str(key).partition("_")
        if bar and side in _SIDES:
            link.setdefault(side, {})[rest] = value
        else:
            link[str(key)] = value
    return link


FORMATS: dict[str, Callable[[str], dict[str, Any]]] = {".yaml": _yaml, ".yml": _yaml, ".json": _json, ".graphml": _graphml}
"""Readers by file name suffix."""

"""Import cycles, imports for type checkers included: none across folders, and at most two files within one."""

import ast
from functools import cache
from pathlib import Path

import networkx
import pytest

from tests.tidy.tree import PACKAGES, ROOT, modules, parsed

MOST = 2
"""Files that may import each other, if they lie in one folder."""


def module_name(path: Path) -> str:
    """Return the dotted name of a file; for `__init__.py` that of its package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def targets(path: Path, known: set[str]) -> set[str]:
    """Return the project's modules that a file imports, anywhere in the file."""
    found = set()
    for node in ast.walk(parsed(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            owner = name if name in known else name.rpartition(".")[0]
            if owner in known:
                found.add(owner)
    return found


@cache
def imports() -> "networkx.DiGraph[str]":
    """Return the import graph of the project's modules."""
    paths = {module_name(path): path for path in modules(*PACKAGES)}
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for name, path in paths.items():
        graph.add_node(name, folder=path.parent)
        graph.add_edges_from((name, other) for other in targets(path, set(paths)) if other != name)
    return graph


def cycles(graph: "networkx.DiGraph[str]") -> list[list[str]]:
    """Return the groups of modules that import each other, directly or indirectly."""
    return sorted(sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1)


def test_no_import_cycle_spans_folders() -> None:
    graph = imports()
    wrong = [group for group in cycles(graph) if len({graph.nodes[name]["folder"] for name in group}) > 1]
    assert not wrong, "\n".join(" <-> ".join(group) for group in wrong)


def test_at_most_two_files_of_a_folder_import_each_other() -> None:
    wrong = [group for group in cycles(imports()) if len(group) > MOST]
    assert not wrong, "\n".join(" <-> ".join(group) for group in wrong)


def test_a_cycle_is_detected() -> None:
    graph: networkx.DiGraph[str] = networkx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    assert cycles(graph) == [["a", "b", "c"]]


@pytest.mark.parametrize(("folder", "base"), [("workload", ""), ("scenario", "workload"), ("statistics", ""), ("theory", "")])
def test_folders_that_others_build_upon_import_none_of_them(folder: str, base: str) -> None:
    below = (f"experiments.{folder}.", f"experiments.{base or folder}.")
    upwards = [(name, other) for name, other in imports().edges if name.startswith(below[0]) and not other.startswith(below)]
    assert not [edge for edge in upwards if edge[1].startswith("experiments.")]

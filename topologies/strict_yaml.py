"""Strict YAML: plain values only, and a duplicate key is an error (PyYAML takes the last one)."""

from collections.abc import Hashable
from typing import Any

import yaml

__all__ = ["parse_yaml"]


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} appears twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> Any:
    """Return the value in a YAML text. Raises `yaml.YAMLError`."""
    # Safe: the loader derives from SafeLoader and constructs plain values only.
    return yaml.load(text, _Loader)

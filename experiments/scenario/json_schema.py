"""Complete the JSON Schemas that pydantic writes, for editors that show them."""

import re
from typing import Any

__all__ = ["describe_kinds"]


def describe_kinds(schema: Any) -> None:
    """Describe every property that selects a kind, such as `kind: star`, by the first sentence about that kind; in place.

    Such a property allows one value only, and pydantic gives it no description.
    """
    if isinstance(schema, list):
        for item in schema:
            describe_kinds(item)
    if not isinstance(schema, dict):
        return
    for item in schema.values():
        describe_kinds(item)
    properties = schema.get("properties")
    for item in properties.values() if isinstance(properties, dict) else ():
        if isinstance(item, dict) and "const" in item and "description" not in item:
            item["description"] = f"{item['const']}: {_first_sentence(schema['description'])}"


def _first_sentence(text: str) -> str:
    """Return the first sentence of a description that may be broken into lines."""
    whole = " ".join(text.split())
    return re.split(r"(?<!\.)\. ", whole)[0].rstrip(".")

"""Turn pydantic's validation errors into one line: the key, its value, and what is allowed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from experiments.scenario.suggestion import did_you_mean
from protocols.errors import ConfigError

__all__ = ["complaint", "shown", "validated"]

LONGEST_VALUE = 80
Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], data: object, origin: object, schema: Callable[[], Mapping[str, Any]]) -> Model:
    """Validate what a user wrote as a `model`. ConfigError is one line with `origin`, key, value and what is allowed.

    `schema` returns the JSON Schema of the model; it is called only for errors.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {complaint(error, data, schema())}") from error
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error


def complaint(error: ValidationError, data: object, schema: Mapping[str, Any]) -> str:
    """Return `key.path: value 'x' is not allowed; <what is>` for the error that is nested deepest in `data`.

    `schema` is the JSON Schema of the model, from which the allowed keys are taken.
    """
    found = [(_path(item, data), item) for item in error.errors(include_url=False)]
    # A key that is missing may be there with a typo, so an unknown one goes first.
    path, item = max(found, key=lambda pair: (len(pair[0]), pair[1]["type"] == "extra_forbidden"))
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        return f"{'.'.join(path)}: is missing; it has no default"
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        tagged = ".".join((*path, context["discriminator"].strip("'")))
        if kind == "union_tag_not_found":
            return f"{tagged}: is missing; one of {_keys(schema, data, path)}"
        tags = str(context["expected_tags"])
        near = did_you_mean(context["tag"], re.findall("'([^']*)'", tags))
        return f"{tagged}: value {shown(context['tag'])} is not allowed; one of {tags}{near}"
    allowed = _unknown_key(path[-1], _keys(schema, data, path[:-1])) if kind == "extra_forbidden" else _allowed(item)
    return f"{'.'.join(path) or 'scenario'}: value {shown(item['input'])} is not allowed; {allowed}"


def _unknown_key(key: str, known: str) -> str:
    return f"unknown key, known here: {known}{did_you_mean(key, known.split(', '))}"


def _path(item: ErrorDetails, data: object) -> tuple[str, ...]:
    """Return the keys as a user wrote them: pydantic's location also contains union tags and validator names."""
    path: list[str] = []
    for part in item["loc"]:
        listed = isinstance(data, Sequence) and not isinstance(data, str) and isinstance(part, int) and part < len(data)
        if listed or (isinstance(data, Mapping) and part in data):
            data = data[part]  # type: ignore[index]
        elif item["type"] != "missing" or part != item["loc"][-1]:
            continue
        path.append(str(part))
    return tuple(path)


def shown(value: object) -> str:
    """Return the value as Python writes it, shortened."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def _allowed(item: ErrorDetails) -> str:
    reason = item.get("ctx", {}).get("error")
    text = str(reason) if reason is not None else item["msg"]
    own = f"{item['input']!r} is not "
    if text.startswith(own):
        return "it is not " + text.removeprefix(own)
    if item["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return "it should be a mapping of keys to values"
    if item["type"] in ("tuple_type", "list_type"):
        return "it should be a list"
    return re.sub("^(Input|Value|List|Tuple|Set|Dictionary|String) should", "it should", " ".join(text.split()))


def _keys(schema: Mapping[str, Any], data: object, path: Sequence[str]) -> str:
    """Return the keys that the schema allows at `path`, or the kinds if the value has no kind."""
    node = _resolve(schema, schema, data)
    for part in path:
        data = data[int(part)] if isinstance(data, Sequence) else data[part] if isinstance(data, Mapping) else None
        inner = node.get("properties", {}).get(part) or node.get("items") or {}
        node = _resolve(schema, inner, data)
    if "oneOf" in node:
        return ", ".join(node.get("discriminator", {}).get("mapping", {}))
    return ", ".join(node.get("properties", {}))


def _resolve(schema: Mapping[str, Any], node: Mapping[str, Any], data: object) -> Mapping[str, Any]:
    """Return the schema of `data`: follow references and select the branch of a union."""
    while True:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        elif "discriminator" in node and isinstance(data, Mapping) and (kind := _kind(schema, node, data)) is not None:
            node = {"$ref": node["discriminator"]["mapping"][kind]}
        elif "anyOf" in node:
            node = _branch(schema, node["anyOf"], data)
        else:
            return node


def _kind(schema: Mapping[str, Any], node: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Return the kind of a value, or of one without a kind the only kind that has a default; None without such a kind."""
    if "kind" in data:
        return data["kind"]
    found = {kind: _resolve(schema, {"$ref": ref}, None) for kind, ref in node["discriminator"]["mapping"].items()}
    usual = [kind for kind, branch in found.items() if "default" in branch.get("properties", {}).get("kind", {})]
    return usual[0] if len(usual) == 1 else None


def _branch(schema: Mapping[str, Any], branches: Sequence[Mapping[str, Any]], data: object) -> Mapping[str, Any]:
    wanted = "items" if isinstance(data, Sequence) else "properties"
    resolved = [_resolve(schema, branch, data) for branch in branches]
    return next((node for node in resolved if wanted in node), {})

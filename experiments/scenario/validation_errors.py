"""Turn pydantic's validation errors into one line: the key, its value, and what is allowed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from experiments.scenario.suggestion import did_you_mean
from protocols.errors import ConfigError, shown

__all__ = ["complaint", "refused", "validated"]

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
        raise ConfigError(f"{origin}: {_as_written(str(error), data)}") from error


def _as_written(text: str, data: object) -> str:
    """Return an error with keys as the user wrote them: without a list `workload.from`, not `workload.0.from`."""

    def key(match: re.Match[str]) -> str:
        is_single = isinstance(data, Mapping) and isinstance(data.get(match[1]), Mapping)
        return match[1] if is_single else match[0]

    return re.sub(r"(?<![\w.])([a-z]+)\.0(?![\w])", key, text)


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
            node, _ = _at(schema, data, path)
            return f"{tagged}: is missing; one of {', '.join(dict.fromkeys(_tags(schema, node, tagged.rpartition('.')[2])))}"
        tags = str(context["expected_tags"])
        near = did_you_mean(context["tag"], re.findall("'([^']*)'", tags))
        return f"{tagged}: value {shown(context['tag'])} is not allowed; one of {tags}{near}"
    key = f"{'.'.join(path)}: " if path else ""
    if kind == "extra_forbidden":
        known = _unknown_key(path[-1], _keys(schema, data, path[:-1]))
        return f"{key}value {shown(item['input'])} is not allowed; {known}"
    return key + refused(item)


def refused(item: ErrorDetails) -> str:
    """Return `value 'x' is not allowed; <what is>` for one of pydantic's errors."""
    return f"value {shown(item['input'])} is not allowed; {_allowed(item)}"


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


def _allowed(item: ErrorDetails) -> str:
    reason = item.get("ctx", {}).get("error")
    text = str(reason) if reason is not None else item["msg"]
    own = f"{shown(item['input'])} is not "
    if text.startswith(own):
        return "it is not " + text.removeprefix(own)
    if item["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return "it should be a mapping of keys to values"
    if item["type"] in ("tuple_type", "list_type"):
        return "it should be a list"
    text = re.sub(" after validation, not [0-9]+$", "", " ".join(text.split()))
    return re.sub("^(Input|Value|List|Tuple|Set|Dictionary|String) should", "it should", text)


def _keys(schema: Mapping[str, Any], data: object, path: Sequence[str]) -> str:
    """Return the keys that the schema allows at `path`."""
    return ", ".join(_resolve(schema, *_at(schema, data, path)).get("properties", {}))


def _at(schema: Mapping[str, Any], data: object, path: Sequence[str]) -> tuple[Mapping[str, Any], object]:
    """Return the schema of the value at `path`, which may be a reference or a union, and the value."""
    node = schema
    for part in path:
        node = _resolve(schema, node, data)
        data = data[int(part)] if isinstance(data, Sequence) else data[part] if isinstance(data, Mapping) else None
        node = node.get("properties", {}).get(part) or node.get("items") or node.get("additionalProperties") or {}
    return node, data


def _tags(schema: Mapping[str, Any], node: Mapping[str, Any], key: str) -> list[str]:
    """Return the values of the key by which the branches of a union are told apart."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    if "discriminator" in node:
        return list(node["discriminator"]["mapping"])
    own = node.get("properties", {}).get(key, {}).get("const")
    return [tag for branch in _union(node) for tag in _tags(schema, branch, key)] if own is None else [own]


def _union(node: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = node.get("anyOf") or node.get("oneOf") or ()
    return found


def _resolve(schema: Mapping[str, Any], node: Mapping[str, Any], data: object) -> Mapping[str, Any]:
    """Return the schema of `data`: follow references and select the branch of a union."""
    while True:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        elif "discriminator" in node and isinstance(data, Mapping) and (kind := _kind(schema, node, data)) is not None:
            node = {"$ref": node["discriminator"]["mapping"][kind]}
        elif _union(node):
            node = _branch(schema, _union(node), data)
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
    fitting = [node for node in resolved if wanted in node]
    return next((node for node in fitting if _is_kind(node, data)), fitting[0] if fitting else {})


def _is_kind(node: Mapping[str, Any], data: object) -> bool:
    """Return whether a value has none but the constants of a branch, such as its `model`."""
    constants = {key: inner["const"] for key, inner in node.get("properties", {}).items() if "const" in inner}
    return isinstance(data, Mapping) and all(data.get(key) == constant for key, constant in constants.items())

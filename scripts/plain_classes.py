"""Expand dataclasses to plain classes for mypyc, which looks up the attributes of a slotted dataclass by name.

`spell_out(source)` returns a module's source with every dataclass as a class with `__init__`, `__repr__`, `__eq__`, and, when
it is frozen, `__hash__`; other lines stay as they are. `dataclasses.fields` and `replace` still work. Frozen classes become
mutable; mypy checks on the source that no code changes them.
"""

import ast
from dataclasses import dataclass

__all__ = ["spell_out"]

IMPORTS = "from dataclasses import field as _field, make_dataclass as _make_dataclass"


@dataclass(frozen=True)
class _Field:
    """One field: `default` is source text, None when there is none."""

    name: str
    kind: str
    default: str | None
    init: bool = True
    compare: bool = True
    repr: bool = True
    kw_only: bool = False


def spell_out(source: str) -> str:
    """Return the module with its dataclasses expanded. Raises ValueError for default factories, which are not supported."""
    lines = source.splitlines()
    known: dict[str, list[_Field]] = {}
    edits: list[tuple[int, int, list[str]]] = []
    for node in ast.parse(source).body:
        marks = [mark for mark in getattr(node, "decorator_list", ()) if ast.unparse(mark).partition("(")[0] == "dataclass"]
        if not isinstance(node, ast.ClassDef) or not marks:
            continue
        own = {name: (line, _field_of(name, line)) for name, line in _declared(node).items()}
        inherited = {entry.name: entry for base in node.bases for entry in known.get(ast.unparse(base), ())}
        fields = known[node.name] = list((inherited | {name: entry for name, (_, entry) in own.items()}).values())
        edits.append((*_span(marks[0]), []))
        edits += [(*_span(line), [f"    {entry.name}: {entry.kind}"]) for line, entry in own.values()]
        slots = f"    __slots__ = ({''.join(f'{name!r}, ' for name in own)})"
        methods, (_, end) = _methods(node, fields, "frozen=True" in ast.unparse(marks[0])), _span(node)
        edits.append((end + 1, end, ["", slots, *methods, *_twin(node.name, fields)]))
    for first, last, text in sorted(edits, reverse=True):
        lines[first - 1 : last] = text
    return "\n".join(lines) + "\n"


def _span(node: ast.stmt | ast.expr) -> tuple[int, int]:
    """Return the first and the last line."""
    return node.lineno, node.end_lineno or node.lineno


def _declared(node: ast.ClassDef) -> dict[str, ast.AnnAssign]:
    """Return the fields of a class by name."""
    lines = [line for line in node.body if isinstance(line, ast.AnnAssign)]
    return {ast.unparse(line.target): line for line in lines if not ast.unparse(line.annotation).startswith("ClassVar")}


def _field_of(name: str, line: ast.AnnAssign) -> _Field:
    kind, value = ast.unparse(line.annotation), line.value
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) == "field"):
        return _Field(name, kind, None if value is None else ast.unparse(value))
    options = {str(option.arg): ast.unparse(option.value) for option in value.keywords}
    if "default_factory" in options:
        raise ValueError(f"{name}: default factories are not supported")
    flags = {key: text == "True" for key, text in options.items() if key != "default"}
    return _Field(name, kind, options.get("default"), **flags)


def _methods(node: ast.ClassDef, fields: list[_Field], frozen: bool) -> list[str]:
    written = {line.name for line in node.body if isinstance(line, ast.FunctionDef)}
    compared = [entry.name for entry in fields if entry.compare]
    text = ["", *_init(fields, "__post_init__" in written)]
    if "__repr__" not in written:
        shown = ", ".join(f"{entry.name}={{self.{entry.name}!r}}" for entry in fields if entry.repr)
        text += ["", "    def __repr__(self) -> str:", f'        return f"{node.name}({shown})"']
    text += ["", "    def __eq__(self, other: object) -> bool:", f"        if type(other) is not {node.name}:"]
    text += ["            return NotImplemented"]
    text += [f"        return {' and '.join(f'self.{name} == other.{name}' for name in compared) or 'True'}"]
    if frozen:
        hashed = "".join(f"self.{name}, " for name in compared)
        text += ["", "    def __hash__(self) -> int:", f"        return hash(({hashed}))"]
    return text


def _init(fields: list[_Field], settle: bool) -> list[str]:
    taken = [entry for entry in fields if entry.init]
    plain = [_parameter(entry) for entry in taken if not entry.kw_only]
    named = [_parameter(entry) for entry in taken if entry.kw_only]
    header = ", ".join(["self", *plain, *(["*"] if named else []), *named])
    rows = [f"        self.{entry.name} = {entry.name}" for entry in taken]
    rows += [f"        self.{entry.name} = {entry.default}" for entry in fields if not entry.init and entry.default is not None]
    return [f"    def __init__({header}) -> None:", *rows, *(["        self.__post_init__()"] if settle else [])]


def _parameter(entry: _Field) -> str:
    return f"{entry.name}: {entry.kind}" + ("" if entry.default is None else f" = {entry.default}")


def _twin(name: str, fields: list[_Field]) -> list[str]:
    """Return code that gives the class the `__dataclass_fields__` of an equal dataclass, for `replace` and `fields`."""
    rows = ", ".join(f'"{entry.name}"' if entry.init else f'("{entry.name}", object, _field(init=False))' for entry in fields)
    twin = f'getattr(_make_dataclass("{name}", [{rows}]), "__dataclass_fields__")'
    return ["", IMPORTS, f'setattr({name}, "__dataclass_fields__", {twin})', ""]

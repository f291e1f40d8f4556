"""Dataclasses spelled out as plain classes, for mypyc: it compiles those only to classes whose attributes are looked up by name.

`spell_out(source)` gives a module's source with every dataclass as a class with `__init__`, `__eq__`, `__repr__`, and `__hash__`
when it is frozen; all else stays as it is, line by line. `dataclasses.fields` and `replace` still work on them. What is frozen
can be changed then: that nobody does is what mypy says of the source.
"""

import ast
from dataclasses import dataclass

__all__ = ["spell_out"]

KEEP = "from dataclasses import field as _field, make_dataclass as _make_dataclass"


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
    """The module with its dataclasses spelled out. ValueError for what is not provided for: factories of defaults."""
    lines = source.splitlines()
    known: dict[str, list[_Field]] = {}
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    edits: list[tuple[int, int, list[str]]] = []
    for node in classes:
        marks = [mark for mark in node.decorator_list if ast.unparse(mark).partition("(")[0] == "dataclass"]
        if not marks:
            continue
        own = {
            line.target.id: line for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }
        own = {name: line for name, line in own.items() if not ast.unparse(line.annotation).startswith("ClassVar")}
        fields = {entry.name: entry for base in node.bases for entry in known.get(ast.unparse(base), ())}
        fields |= {name: _field_of(name, line) for name, line in own.items()}
        known[node.name] = list(fields.values())
        edits += [(mark.lineno, mark.end_lineno or mark.lineno, []) for mark in marks]
        edits += [
            (line.lineno, line.end_lineno or line.lineno, [f"    {name}: {fields[name].kind}"]) for name, line in own.items()
        ]
        end = node.end_lineno or node.lineno
        edits.append((end + 1, end, _methods(node, known[node.name], "frozen=True" in ast.unparse(marks[0]))))
    for first, last, text in sorted(edits, reverse=True):
        lines[first - 1 : last] = text
    return "\n".join(lines) + "\n"


def _field_of(name: str, line: ast.AnnAssign) -> _Field:
    kind, value = ast.unparse(line.annotation), line.value
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) == "field"):
        return _Field(name, kind, None if value is None else ast.unparse(value))
    options = {str(option.arg): ast.unparse(option.value) for option in value.keywords}
    if "default_factory" in options:
        raise ValueError(f"{name}: a factory of defaults is not spelled out")
    flags = {key: text == "True" for key, text in options.items() if key != "default"}
    return _Field(name, kind, options.get("default"), **flags)


def _methods(node: ast.ClassDef, fields: list[_Field], frozen: bool) -> list[str]:
    written = {line.name for line in node.body if isinstance(line, ast.FunctionDef)}
    text = ["", *_init(fields, "__post_init__" in written)]
    shown = ", ".join(f"{entry.name}={{self.{entry.name}!r}}" for entry in fields if entry.repr)
    if "__repr__" not in written:
        text += ["", "    def __repr__(self) -> str:", f'        return f"{node.name}({shown})"']
    compared = [entry.name for entry in fields if entry.compare]
    equal = " and ".join(f"self.{name} == other.{name}" for name in compared) or "True"
    text += ["", "    def __eq__(self, other: object) -> bool:", f"        if type(other) is not {node.name}:"]
    text += ["            return NotImplemented", f"        return {equal}"]
    if frozen:
        hashed = "".join(f"self.{name}, " for name in compared)
        text += ["", "    def __hash__(self) -> int:", f"        return hash(({hashed}))"]
    # What `replace` and `fields` look at, of a dataclass with these fields and nothing else.
    rows = ", ".join(f'"{entry.name}"' if entry.init else f'("{entry.name}", object, _field(init=False))' for entry in fields)
    twin = f'getattr(_make_dataclass("{node.name}", [{rows}]), "__dataclass_fields__")'
    return [*text, "", KEEP, f'setattr({node.name}, "__dataclass_fields__", {twin})', ""]


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

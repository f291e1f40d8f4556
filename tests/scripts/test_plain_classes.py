"""Dataclasses written as plain classes behave as before, and compiled classes allow interpreted subclasses."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from protocols.norm import messages
from tests.tidy.tree import PACKAGES, ROOT, label, modules, parsed

SCRIPTS = ROOT / "scripts"


@pytest.fixture(scope="module")
def scripts() -> Iterator[tuple[Any, Any]]:
    """Import `scripts/compiled.py` and `scripts/plain_classes.py`."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        import compiled  # type: ignore[import-not-found]
        import plain_classes  # type: ignore[import-not-found]

        yield compiled, plain_classes
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def spelled(scripts: tuple[Any, Any]) -> Any:
    """Return the NORM messages with every dataclass written as a plain class."""
    module = ModuleType("spelled_messages")
    source = scripts[1].spell_out(Path(messages.__file__).read_text())
    assert "@dataclass" not in source
    exec(compile(source, "spelled_messages.py", "exec"), module.__dict__)
    return module


def some_data(module: Any) -> Any:
    """Return one message with nested objects."""
    origin, fti = module.Origin(1, 2, 3, 4, 5), module.Fti(5, 1000, 100, 4, 2)
    return module.Data(origin, 7, 16, 5, 0, 1, 2, 4, fti, b"x", 1, 99)


def some_nack(module: Any) -> Any:
    """Return one message with repair requests."""
    return module.Nack(1, 0, 2, 3, 0, 0, (module.Request(1, 1, (module.Item(5, 0, 1, 2),)),))


@pytest.mark.parametrize("make", [some_data, some_nack, lambda module: module.Flush(None, 1, 5, 0, 3, 4, acking=(6,))])
def test_a_plain_class_behaves_like_its_dataclass(spelled: Any, make: Any) -> None:
    plain, before = make(spelled), make(messages)
    assert repr(plain) == repr(before)
    assert plain == make(spelled)
    assert plain != before
    assert plain != replace(plain, sequence=8)
    assert replace(plain, sequence=8) == replace(plain, sequence=8)
    assert [entry.name for entry in fields(plain)] == [entry.name for entry in fields(before)]
    assert all(getattr(plain, name) == getattr(before, name) for name in ("kind", "identity", "sequence", "brief"))


def test_frozen_classes_are_hashable_and_set_derived_fields(spelled: Any) -> None:
    plain, before = some_data(spelled).fti, some_data(messages).fti
    assert {plain: 1}[spelled.Fti(5, 1000, 100, 4, 2)] == 1
    assert (plain.m, plain.usable, plain.partition.blocks) == (before.m, before.usable, before.partition.blocks)
    with pytest.raises(FrozenInstanceError):
        before.m = 16
    with pytest.raises(TypeError, match="unhashable"):
        hash(some_data(spelled))


def test_default_factories_are_refused(scripts: tuple[Any, Any]) -> None:
    source = "@dataclass(slots=True)\nclass Heap:\n    rows: list[int] = field(default_factory=list)\n"
    with pytest.raises(ValueError, match="rows"):
        scripts[1].spell_out(source)


def test_compiled_classes_allow_interpreted_subclasses(scripts: tuple[Any, Any]) -> None:
    compiled = {ROOT / name for name in scripts[0].MODULES}
    closed = set[str]()
    for path in sorted(compiled):
        module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for node in parsed(path).body:
            marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
            bases = [ast.unparse(base) for base in getattr(node, "bases", ())]
            if (
                isinstance(node, ast.ClassDef)
                and "Protocol" not in bases
                and not any("allow_interpreted" in mark for mark in marks)
            ):
                closed.add(f"{module}.{node.name}")
    wrong = [
        f"{label(path)}: {node.name}({name})"
        for path in modules(*PACKAGES)
        if path not in compiled
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        for name in (imported_as(parsed(path), ast.unparse(base)) for base in node.bases)
        if name in closed
    ]
    assert not wrong, "interpreted classes on compiled ones that do not allow it (mypyc_attr):\n" + "\n".join(wrong)


def imported_as(tree: ast.Module, name: str) -> str:
    """Return the dotted name that `name` has in a module."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(name in (alias.asname, alias.name) for alias in node.names):
            return f"{node.module}.{name}"
    return name

"""Files and functions are small, public names are documented and listed, and no order depends on hashes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import PACKAGES, ROOT, functions, label, modules, parsed

FILE_LIMIT, MACHINE_LIMIT, FUNCTION_LIMIT = 500, 700, 40
STATE_MACHINES = {"protocols/norm/sender.py", "protocols/norm/sender_state.py", "sim/tcp/end.py"}
"""Files that are one state machine, which is easier to read in one place."""
CODE = (*PACKAGES, "benchmarks")


def test_files_are_short() -> None:
    lengths = {label(path): len(path.read_text().splitlines()) for path in modules(*CODE, "tests")}
    limits = {name: MACHINE_LIMIT if name in STATE_MACHINES else FILE_LIMIT for name in lengths}
    wrong = [f"{name}: {lines} lines; at most {limits[name]}" for name, lines in lengths.items() if lines > limits[name]]
    assert not wrong, "\n".join(wrong)
    assert set(lengths) >= STATE_MACHINES


@pytest.mark.parametrize(("name", "limit"), [("protocols/machine.py", 250), ("protocols/norm/receiver.py", 130)])
def test_the_machine_contract_and_the_plain_receiver_are_short(name: str, limit: int) -> None:
    assert len((ROOT / name).read_text().splitlines()) < limit


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function without its signature, which for a command lists all its options."""
    return (node.end_lineno or node.lineno) - node.body[0].lineno + 1


def test_functions_are_short() -> None:
    wrong = [
        f"{label(path)}:{node.lineno} {node.name}: {lines} lines"
        for path in modules(*CODE)
        for node in functions(parsed(path))
        if (lines := body_lines(node)) > FUNCTION_LIMIT
    ]
    assert not wrong, f"more than {FUNCTION_LIMIT} lines:\n" + "\n".join(wrong)


def public(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield functions and classes of a module and methods of its public classes; names that begin with _ are private."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def continues(node: ast.AST) -> bool:
    """Return whether a function is a property's setter or an overload, documented with its first definition."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    names = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(name.endswith((".setter", ".deleter", "overload")) for name in names)


def test_public_names_have_docstrings() -> None:
    wrong = [label(path) for path in modules(*CODE, "tests") if not ast.get_docstring(parsed(path))]
    for path in modules(*CODE):
        wrong += [
            f"{label(path)}:{node.lineno} {node.name}"
            for node in public(parsed(path).body)
            if not ast.get_docstring(node) and not continues(node)
        ]
    assert not wrong, "no docstring:\n" + "\n".join(wrong)


def listed(path: Path) -> list[str] | None:
    """Return the names in `__all__`, or None without one."""
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets):
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


def test_every_module_lists_its_public_names() -> None:
    wrong = []
    for path in modules(*PACKAGES):
        names, body = listed(path), parsed(path).body
        mine = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_"}
        if names is None and (mine or any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body)):
            wrong.append(f"{label(path)} has no __all__")
        elif names is not None and mine - set(names):
            wrong.append(f"{label(path)}: not in __all__: {', '.join(sorted(mine - set(names)))}")
    assert not wrong, "\n".join(wrong)


# The order of a set differs between processes, so results must not depend on iteration over one.

UNORDERED = ("set", "frozenset")
KEEPS_NO_ORDER = {"sorted", "min", "max", "any", "all", "len", "set", "frozenset"}
TAKES_ORDER = {"list", "tuple", "enumerate", "iter", "zip", "map", "dict", "deque", "next"}


def is_set_type(annotation: ast.expr | None) -> bool:
    """Return whether an annotation is set or frozenset."""
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(base, ast.Name) and base.id in UNORDERED


class SetWalks(ast.NodeVisitor):
    """Finds iterations over sets in one file: literals, calls of set(), and names annotated or assigned as sets."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: set[str] = set()
        self.found: list[int] = []
        self.harmless: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and is_set_type(node.annotation):
                self.names.add(ast.unparse(node.target))
            elif isinstance(node, ast.arg) and is_set_type(node.annotation):
                self.names.add(node.arg)
            elif isinstance(node, ast.Assign) and self.is_set(node.value):
                self.names |= {ast.unparse(target) for target in node.targets}
        self.visit(tree)

    def is_set(self, node: ast.expr) -> bool:
        """Return whether an expression is known to be a set."""
        if isinstance(node, (ast.Set, ast.SetComp)):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id in UNORDERED
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in {"union", "intersection", "difference"} and self.is_set(node.func.value)
        if isinstance(node, ast.BinOp):
            return self.is_set(node.left) or self.is_set(node.right)
        return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in self.names

    def visit_For(self, node: ast.For) -> None:
        """Check a loop."""
        self._note(node.iter)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Check a call that preserves the order or a `pop`, and skip calls whose result has no order."""
        if isinstance(node.func, ast.Name) and node.func.id in TAKES_ORDER:
            for argument in node.args:
                self._note(argument)
        if isinstance(node.func, ast.Name) and node.func.id in KEEPS_NO_ORDER:
            self.harmless |= {id(argument) for argument in node.args}
        if isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not node.args:
            self._note(node.func.value)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        """Check a list made of a set."""
        self._comprehension(node, node.generators)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        """Check a generator over a set."""
        self._comprehension(node, node.generators)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        """Check a dict made of a set, which keeps the order of insertion."""
        self._comprehension(node, node.generators)

    def _comprehension(self, node: ast.expr, generators: list[ast.comprehension]) -> None:
        if id(node) not in self.harmless:
            for generator in generators:
                self._note(generator.iter)
        self.generic_visit(node)

    def _note(self, node: ast.expr) -> None:
        if self.is_set(node):
            self.found.append(node.lineno)


@pytest.mark.parametrize("package", ["protocols", "sim"])
def test_no_code_iterates_over_sets(package: str) -> None:
    wrong = [f"{label(path)}:{line}" for path in modules(package) for line in SetWalks(parsed(path)).found]
    assert not wrong, "depends on the order of a set:\n" + "\n".join(wrong)


@pytest.mark.parametrize("package", ["protocols", "sim"])
def test_no_code_calls_hash(package: str) -> None:
    wrong = [
        f"{label(path)}:{node.lineno}"
        for path in modules(package)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hash"
    ]
    assert not wrong, "hash() differs from process to process:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("for x in {1, 2}: pass", [1]),
        ("s = set()\nfor x in s: pass", [2]),
        ("def f(s: set[int]):\n return [x for x in s]", [2]),
        ("class A:\n def f(self):\n  self.s: set[int] = set()\n  self.s.pop()", [4]),
        ("s = {1}\nlist(s | {2})", [2]),
        ("s = {1}\nsorted(x for x in s)\nlen(s)\n{x for x in s}", []),
        ("s = [1]\nfor x in s: pass", []),
    ],
)
def test_iterations_over_sets_are_detected(source: str, lines: list[int]) -> None:
    assert SetWalks(ast.parse(source)).found == lines

"""The compiled build takes modules as they are written, and is used only for the sources it was built from."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.tidy.tree import PACKAGES, ROOT, label, modules, parsed

SUFFIX = EXTENSION_SUFFIXES[0]


def script(name: str) -> ModuleType:
    """Import a file of `scripts`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled = script("compiled")


def compiled_classes() -> list[tuple[str, ast.ClassDef]]:
    """Return the classes of compiled modules, with the names of their modules."""
    paths = [ROOT / name for name in compiled.MODULES]
    return [
        (path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."), node)
        for path in paths
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
    ]


def decorators(node: ast.ClassDef) -> list[str]:
    """Return the decorators of a class as text."""
    return [ast.unparse(mark) for mark in node.decorator_list]


def imported_as(tree: ast.Module, name: str) -> str:
    """Return the dotted name that `name` has in a module."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(name in (alias.asname, alias.name) for alias in node.names):
            return f"{node.module}.{name}"
    return name


def test_compiled_classes_allow_interpreted_subclasses() -> None:
    closed = {
        f"{module}.{node.name}"
        for module, node in compiled_classes()
        if "Protocol" not in map(ast.unparse, node.bases) and not any("allow_interpreted" in mark for mark in decorators(node))
    }
    wrong = [
        f"{label(path)}: {node.name}({name})"
        for path in modules(*PACKAGES)
        if label(path) not in compiled.MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        for name in (imported_as(parsed(path), ast.unparse(base)) for base in node.bases)
        if name in closed
    ]
    assert not wrong, "interpreted classes on compiled ones that do not allow it (mypyc_attr):\n" + "\n".join(wrong)


def test_dataclasses_of_compiled_modules_set_no_class_variables_which_mypyc_takes_for_fields() -> None:
    wrong = [
        f"{module}.{node.name}: {ast.unparse(line)}"
        for module, node in compiled_classes()
        if any(mark.startswith("dataclass") for mark in decorators(node))
        for line in node.body
        if isinstance(line, ast.AnnAssign) and ast.unparse(line.annotation).startswith("ClassVar")
    ]
    assert not wrong, "set these below the class (protocols/norm/messages.py):\n" + "\n".join(wrong)


def test_compiled_classes_unpack_nothing_for_the_initialiser_of_a_base_which_mypyc_takes_for_one_argument() -> None:
    wrong = [
        f"{name}:{call.lineno}"
        for name in compiled.MODULES
        for call in ast.walk(parsed(ROOT / name))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"
        if any(isinstance(argument, ast.Starred) for argument in call.args)
    ]
    assert not wrong, wrong


def test_compiled_classes_that_are_called_have_no_base_since_mypyc_puts_a_field_before_those_of_the_base() -> None:
    wrong = [
        f"{module}.{node.name}"
        for module, node in compiled_classes()
        if node.bases and any(isinstance(line, ast.FunctionDef) and line.name == "__call__" for line in node.body)
    ]
    assert not wrong, wrong


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the finder of a build in `tmp_path / "built"` that seems to have `protocols.serial`."""
    monkeypatch.setenv("MCASTLAB_PURE", "0")
    built = tmp_path / "built"
    (built / "protocols").mkdir(parents=True)
    for name in (f"protocols/serial{SUFFIX}", f"1f__mypyc{SUFFIX}"):
        (built / name).touch()
    tree = tmp_path / "tree" / "protocols"
    tree.mkdir(parents=True)
    (tree / "serial.py").write_text("HALF = 1")
    shutil.copy(ROOT / "scripts" / "import_hook.py", built / "__init__.py")
    known = compiled.digests(tmp_path / "tree")
    (built / "sources.json").write_text(json.dumps(known))
    before = list(sys.meta_path)
    finder = script("import_hook").CompiledFinder
    sys.meta_path[:] = before
    return lambda: finder(str(built))


def test_compiled_modules_are_found_for_the_sources_they_were_built_from(hook: Any, tmp_path: Path) -> None:
    finder, folder = hook(), [str(tmp_path / "tree" / "protocols")]
    assert finder.find_spec("protocols.serial", folder).origin == str(tmp_path / "built" / "protocols" / f"serial{SUFFIX}")
    assert finder.find_spec("1f__mypyc").origin == str(tmp_path / "built" / f"1f__mypyc{SUFFIX}")
    assert finder.find_spec("protocols.machine", folder) is None
    assert finder.find_spec("protocols") is None
    assert finder.find_spec("json.decoder", [str(tmp_path / "json")]) is None


def test_after_a_change_of_a_source_or_its_loss_no_compiled_module_is_found(hook: Any, tmp_path: Path) -> None:
    source = tmp_path / "tree" / "protocols" / "serial.py"
    for change in (lambda: source.write_text("HALF = 2"), source.unlink):
        change()
        finder = hook()
        assert finder.find_spec("protocols.serial", [str(source.parent)]) is None
        assert "protocols/serial.py" in finder.refusal(str(tmp_path / "tree"))


def test_a_variable_switches_compiled_modules_off_and_a_process_never_mixes_both(
    hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, folder = hook(), [str(tmp_path / "tree" / "protocols")]
    assert first.find_spec("protocols.serial", folder) is not None
    monkeypatch.setenv("MCASTLAB_PURE", "1")
    second = hook()
    assert first.find_spec("protocols.serial", folder) is not None
    assert second.find_spec("protocols.serial", folder) is None
    assert second.refusal(str(tmp_path / "tree")) == "MCASTLAB_PURE=1"


def imports(folder: Path, root: Path) -> str:
    """Return the file of `protocols.serial` in a process with the build in `folder` and the sources in `root`."""
    program = "import mcastlab_compiled, protocols.serial; print(protocols.serial.__file__)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{root}", "MCASTLAB_PURE": "0"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_a_build_of_one_module_is_imported_for_equal_sources_only_and_kept(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    compiled.compile_into(tmp_path / "a", ["protocols/serial.py"])
    file = Path(imports(tmp_path / "a", ROOT))
    assert file == tmp_path / "a" / "mcastlab_compiled" / "protocols" / f"serial{SUFFIX}"
    made = file.stat().st_mtime_ns
    compiled.compile_into(tmp_path / "a", ["protocols/serial.py"])
    assert file.stat().st_mtime_ns == made
    for package in compiled.SOURCES:
        shutil.copytree(ROOT / package, tmp_path / "b" / package, ignore=shutil.ignore_patterns("__pycache__"))
    assert Path(imports(tmp_path / "a", tmp_path / "b")) == file
    with (tmp_path / "b" / "sim" / "host.py").open("a") as source:
        source.write("# changed\n")
    assert Path(imports(tmp_path / "a", tmp_path / "b")) == tmp_path / "b" / "protocols" / "serial.py"

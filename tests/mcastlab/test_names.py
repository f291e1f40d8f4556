"""The public names of the package, and the time its import takes."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mcastlab
from tests.tidy.tree import ROOT

HEAVY = ("pyspark", "pandas", "pyarrow", "matplotlib", "scapy", "simpy", "networkx", "numpy", "pydantic")
SHOW = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules])"


def for_type_checkers() -> dict[str, str]:
    """Return the names that type checkers see, with their modules."""
    tree = ast.parse(Path(mcastlab.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    found = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in found for alias in node.names}


def python(code: str) -> str:
    """Return the output of a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_type_checkers_and_users_have_the_same_names() -> None:
    assert for_type_checkers() == mcastlab._MODULES
    assert set(mcastlab.__all__) == {"__version__", *mcastlab._MODULES}


@pytest.mark.parametrize("name", mcastlab.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(mcastlab, name) is not None
    assert name in dir(mcastlab)


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NormSendr'"):
        _ = mcastlab.NormSendr  # type: ignore[attr-defined]


def test_importing_the_package_loads_no_slow_modules() -> None:
    assert python(f"import mcastlab; {SHOW}") == "[]"


def test_listing_the_commands_loads_no_slow_modules() -> None:
    run = "from experiments.cli import invoke; assert invoke(['--help']) == 0"
    assert python(f"{run}; {SHOW}").splitlines()[-1] == "[]"


def test_a_run_in_the_simulator_loads_no_hosts_and_networks_of_mininet() -> None:
    run = "import sys; from experiments.cli import invoke; assert invoke(['run', 'lan-file', '--brief']) == 0"
    show = "print({'asyncio', 'emu.host', 'emu.network', 'emu.node'} & sys.modules.keys())"
    assert python(f"{run}; {show}").splitlines()[-1] == "set()"


def test_the_package_can_be_run_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcastlab", "--version"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == f"{mcastlab.__version__} (pure Python)"

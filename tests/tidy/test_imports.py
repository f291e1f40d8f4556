"""Imports point downwards, protocols have no side effects, and no other distribution owns our package names."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import PACKAGES, ROOT, label, modules, parsed

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "protocols": (),
    "topologies": ("protocols.errors", "protocols.rng", "protocols.rng_arrays"),
    "sim": ("protocols", "topologies"),
    "emu": ("protocols", "topologies"),
    "experiments": ("protocols", "topologies", "sim", "emu"),
    "mcastlab": ("protocols", "topologies", "sim", "emu", "experiments"),
}
IMPURE = {
    *("asyncio", "concurrent", "datetime", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets"),
    *("select", "selectors", "simpy", "socket", "subprocess", "sys", "threading", "time", "uuid", "networkx", "pydantic"),
}
"""Modules that a protocol may not import: clocks, random numbers, input and output."""


def imported(path: Path) -> set[str]:
    """Return the dotted names of everything a file imports, anywhere in the file, with relative imports resolved."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = list(path.relative_to(ROOT).parts[: -node.level]) if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def lies_in(name: str, place: str) -> bool:
    """Return whether the dotted `name` is the module `place` or inside it."""
    return name == place or name.startswith(place + ".")


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_downwards(package: str) -> None:
    allowed = (package, *MAY_IMPORT[package])
    wrong = [
        f"{label(path)} imports {name}"
        for path in modules(package)
        for name in sorted(imported(path))
        if any(lies_in(name, other) for other in (*PACKAGES, "tests", "benchmarks"))
        and not any(lies_in(name, place) for place in allowed)
    ]
    assert not wrong, "\n".join(wrong)


def test_protocols_import_no_clock_no_random_module_and_no_io() -> None:
    wrong = [
        f"{label(path)} imports {name}"
        for path in modules("protocols")
        for name in sorted(imported(path))
        if name.split(".")[0] in IMPURE
    ]
    assert not wrong, "\n".join(wrong)


WING = ("protocols.fast", "sim.fast")
WING_NAMES = {
    *("attentive", "burst", "coordinator", "expects", "expects_if_complete", "fan_out", "fast", "fast_state", "lockstep"),
    *("apply_to_incomplete", "leave_lockstep", "lookahead", "next_state", "plan_bursts", "plans_bursts", "receive_batch"),
    *("redundant", "wake_in_lockstep"),
}


def is_wing(name: str) -> bool:
    """Return whether the dotted name is in a `fast` folder of the protocols or the simulator."""
    parts = name.split(".")
    return parts[0] in ("protocols", "sim") and "fast" in parts[1:]


def is_host(path: Path) -> bool:
    """Return whether the file may import the fast modules: it is one, or it is where the simulator loads its accelerator."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return is_wing(name) or name == "sim.network"


def test_only_hosts_and_fast_modules_import_fast_modules() -> None:
    wrong = [
        f"{label(path)} imports {name}"
        for path in modules(*PACKAGES)
        for name in sorted(imported(path))
        if is_wing(name) and not is_host(path)
    ]
    assert not wrong, "\n".join(wrong)


def test_hosts_import_only_the_common_fast_modules_of_protocols() -> None:
    wrong = [
        f"{label(path)} imports {name}"
        for path in modules("sim")
        for name in sorted(imported(path))
        if is_wing(name) and not any(lies_in(name, place) for place in WING)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_contract_of_plain_machines_has_no_names_of_fast_modules() -> None:
    words = set(re.findall(r"\w+", (ROOT / "protocols" / "machine.py").read_text()))
    assert not words & WING_NAMES


def is_dissector(path: Path) -> bool:
    """Return whether a file is `dissector.py` or in a `dissector` folder."""
    return path.parent.name == "dissector" or path.stem == "dissector"


def test_only_dissectors_import_scapy() -> None:
    wrong = [
        f"{label(path)} imports {name}"
        for path in modules(*PACKAGES)
        for name in sorted(imported(path))
        if lies_in(name, "scapy") and not is_dissector(path)
    ]
    assert not wrong, "\n".join(wrong)


def test_dissectors_are_independent_of_the_codec() -> None:
    wrong = [
        f"{label(path)} imports {name}"
        for path in modules("protocols")
        for name in sorted(imported(path))
        if is_dissector(path) and ".wire" in name
    ]
    assert not wrong, "\n".join(wrong)


def test_protocols_open_no_files() -> None:
    wrong = [
        f"{label(path)}:{node.lineno}"
        for path in modules("protocols")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "print", "input"}
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_owns_our_package_names(package: str) -> None:
    places = {Path(entry or ".").resolve() for entry in sys.path}
    # A program of the same name, as among the scripts of an environment, is no module.
    found = [each for place in sorted(places - {ROOT}) for each in (place / package, place / f"{package}.py")]
    owners = [each for each in found if each.is_dir() or (each.suffix and each.exists())]
    assert not owners, f"{package} is also at {owners}"


def test_no_module_is_named_after_the_standard_library() -> None:
    wrong = [label(path) for path in modules(*PACKAGES, "tests", "benchmarks") if path.stem in sys.stdlib_module_names]
    assert not wrong, "\n".join(wrong)

"""Build the optional compiled version: mypyc compiles the modules that process simulated packets.

    python scripts/compiled.py FOLDER

copies the sources into FOLDER and compiles them there; `python -m benchmarks.compiled FOLDER` compares the two builds. The
build hook (`hatch_build.py`) does the same for `MCASTLAB_COMPILE=1 pip install .`. Needs mypy (mypyc comes with it),
setuptools and a C compiler.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from declared import declare
from plain_classes import spell_out

__all__ = ["MODULES", "PACKAGES", "compile_into"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("protocols", "topologies", "sim", "emu", "experiments")
NORM = sorted(
    path.relative_to(ROOT).as_posix()
    for path in Path(ROOT, "protocols", "norm").rglob("*.py")
    if path.stem not in {"__init__", "config"} and path.parent.name != "dissector"
)
"""The modules of NORM that process simulated packets."""
SIM = (
    *("acceleration", "endpoint", "fabric", "fingerprint", "flight", "group_members", "host", "idle", "kernel"),
    *("link", "membership", "network", "occurrence", "routes", "switch", "timers"),
    *("fast/accelerator", "fast/in_flight", "fast/last_hop", "fast/lookahead", "fast/machines"),
    *("fast/schedule", "fast/tree"),
)
MODULES = [
    *(f"protocols/{name}.py" for name in ("machine", "rng", "run", "serial")),
    *(
        f"protocols/fast/{name}.py"
        for name in ("contract", "deferred", "feedback", "group", "index", "lockstep", "lookahead", "overhearers")
    ),
    *NORM,
    *(f"sim/{name}.py" for name in SIM),
    "topologies/draws.py",
    "topologies/drop_tail.py",
    "topologies/losses.py",
]

BUILD = """
import os
import sys
from mypyc.build import mypycify
from setuptools import setup
sys.argv[1:] = ["build_ext", "--inplace"]
options = ["--config-file=", "--strict", "--ignore-missing-imports"]
extensions = mypycify([*options, *{modules!r}], opt_level="3", debug_level="0")
if os.name == "posix":
    # No other library calls compiled functions, so calls among them can be direct or inlined.
    for extension in extensions:
        extension.extra_compile_args = [*extension.extra_compile_args, "-fvisibility=hidden", "-fno-semantic-interposition"]
setup(name="compiled", packages=[], ext_modules=extensions)
"""


def compile_into(folder: Path) -> list[Path]:
    """Copy the packages into `folder` and compile there; return the paths of the extension modules, relative to it.

    RuntimeError with the compiler's log if the build fails.
    """
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    for module in MODULES:
        path = folder / module
        path.write_text(spell_out(declare(path.read_text())))
    made = subprocess.run(
        [sys.executable, "-c", BUILD.format(modules=MODULES)], cwd=folder, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise RuntimeError(f"the compiled build failed:\n{made.stdout}\n{made.stderr}")
    return sorted(
        path.relative_to(folder) for pattern in ("*.so", "*.pyd") for path in folder.rglob(pattern) if "build" not in path.parts
    )


if __name__ == "__main__":
    compile_into(Path(sys.argv[1]).resolve())

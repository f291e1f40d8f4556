"""Compile the modules that process simulated packets with mypyc.

    python scripts/compiled.py FOLDER

compiles the sources of this repository as they are, and writes the package `mcastlab_compiled` into FOLDER: the compiled
modules and a hook that imports them (`scripts/import_hook.py`). A file `mcastlab_compiled.pth` beside it imports that package
whenever Python starts, if FOLDER is the `site-packages` of an environment. A FOLDER with a build of these sources is kept.

`make setup COMPILED=1` calls it; the build hook (`hatch_build.py`) does the same for `MCASTLAB_COMPILE=1 pip install .`. Needs
mypy (mypyc comes with it), setuptools and a C compiler.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

__all__ = ["MODULES", "NAME", "SOURCES", "compile_into", "digests"]

ROOT = Path(__file__).resolve().parents[1]
NAME = "mcastlab_compiled"
SOURCES = ("protocols", "topologies", "sim")
"""The packages that compiled modules are of, and that they import."""
SIM = (
    *("acceleration", "addresses", "endpoint", "fabric", "fingerprint", "flight", "group_members", "host", "host_ports"),
    *("idle", "kernel", "link", "member_uplinks", "membership", "network", "processor", "queue_entry", "routes", "switch"),
    "timers",
)
PROTOCOLS = ("arq", "cross", "fast", "norm", "srm")


def _modules(package: str, *without: str) -> list[str]:
    """Return the modules of a package, and of those in it; `without` are names of modules and packages."""
    found = sorted(path.relative_to(ROOT) for path in ROOT.joinpath(package).rglob("*.py"))
    return [path.as_posix() for path in found if not {"__init__", *without} & {path.stem, *path.parts}]


MODULES = [
    *(
        f"protocols/{name}.py"
        for name in ("composite", "inner_ports", "layer", "machine", "range_set", "rng", "rng_arrays", "run", "serial")
    ),
    "protocols/tcp/congestion.py",
    "protocols/tcp/rtt.py",
    *(path for name in PROTOCOLS for path in _modules(f"protocols/{name}", "config", "dissector")),
    *(f"sim/{name}.py" for name in SIM),
    *_modules("sim/fast"),
    *(
        f"topologies/{name}.py"
        for name in ("differences", "draws", "drop_tail", "ethernet", "group_counter", "losses", "repeats")
    ),
]
"""The modules that are compiled."""

BUILD = """
import os
import sys
from mypyc.build import mypycify
from setuptools import setup
work, sys.argv[1:] = sys.argv[1], ["build_ext", "--build-lib", "built", "--build-temp", "."]
options = ["--config-file=", "--strict", "--ignore-missing-imports", f"--cache-dir={{work}}/types"]
extensions = mypycify([*options, *{modules!r}], opt_level="3", debug_level="0", target_dir=f"{{work}}/c")
if os.name == "posix":
    # No other library calls compiled functions, so calls among them can be direct or inlined.
    for extension in extensions:
        extension.extra_compile_args = [*extension.extra_compile_args, "-fvisibility=hidden", "-fno-semantic-interposition"]
# In the repository setuptools would read pyproject.toml.
os.chdir(work)
setup(name="compiled", packages=[], ext_modules=extensions)
"""


def compile_into(folder: Path, modules: Sequence[str] = MODULES) -> None:
    """Compile, and write the package and the file that imports it into `folder`.

    RuntimeError with the compiler's log if the build fails.
    """
    sources = digests(ROOT)
    package = folder / NAME
    if _is_built(package, sources, modules):
        return
    print(f"compiling {len(modules)} modules; this takes some minutes", file=sys.stderr)
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-c", BUILD.format(modules=list(modules)), work]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if made.returncode:
            raise RuntimeError(f"the compiled build failed:\n{made.stdout}\n{made.stderr}")
        built = Path(work, "built")
        shutil.copy(ROOT / "scripts" / "import_hook.py", built / "__init__.py")
        (built / "sources.json").write_text(json.dumps(sources, indent=1))
        # Put in place by renaming, so that an interrupted build leaves no part of itself.
        new = folder / f"{NAME}.new"
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(built, new)
    shutil.rmtree(package, ignore_errors=True)
    new.rename(package)
    (folder / f"{NAME}.pth").write_text(f"import {NAME}\n")


def digests(root: Path) -> dict[str, str]:
    """Return the digest of each source in the folder `root` that a compiled module may depend on."""
    paths = sorted(path for package in SOURCES for path in root.joinpath(package).rglob("*.py"))
    return {path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest() for path in paths}


def _is_built(package: Path, sources: dict[str, str], modules: Sequence[str]) -> bool:
    """Whether the package has these modules, compiled from these sources for this Python."""
    suffix, known, hook = sysconfig.get_config_var("EXT_SUFFIX"), package / "sources.json", package / "__init__.py"
    return (
        known.exists()
        and json.loads(known.read_text()) == sources
        and all(package.joinpath(module).with_suffix(suffix).exists() for module in modules)
        and hook.read_bytes() == (ROOT / "scripts" / "import_hook.py").read_bytes()
    )


if __name__ == "__main__":
    try:
        compile_into(Path(sys.argv[1]).resolve())
    except RuntimeError as error:
        sys.exit(str(error))

"""Identify the code that Spark's Python workers have to run, so that warm workers never run an older version of it."""

import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from experiments.sweep.run.deployment import PACKAGES

__all__ = ["CODE", "worker_environment"]

CODE = "MCASTLAB_CODE"
"""Environment variable of the workers that holds the digest of their code."""


def worker_environment() -> dict[str, str]:
    """Return the environment variables of the workers of this process: where they import from, and a digest of their code.

    Spark starts separate worker processes for every distinct environment, so changed code never meets modules imported earlier.
    The digest covers mcastlab and every module this process has imported from outside the Python installation, such as a
    protocol named by a dotted name.
    """
    hashed = sha256()
    for path in sorted({*_own_files(), *_foreign_files()}):
        about = path.stat()
        hashed.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    where = [str(Path(entry).absolute()) for entry in sys.path if Path(entry).exists() and not entry.startswith(_installed())]
    return {CODE: hashed.hexdigest()[:16], "PYTHONPATH": os.pathsep.join(dict.fromkeys(where))}


def _own_files() -> Iterator[Path]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, f"{package} is not there"
        assert spec.origin is not None, f"{package} has no file"
        for kind in ("*.py", "*.so"):
            yield from Path(spec.origin).parent.rglob(kind)


def _foreign_files() -> Iterator[Path]:
    """Yield the Python files beside every imported module that belongs neither to Python's installation nor to mcastlab.

    A package's submodules count, since workers may import some that this process did not. Of installed packages the folder
    they are in counts, which changes with every installation.
    """
    installed = _installed()
    yield from (Path(entry) for entry in sys.path if entry.endswith("site-packages") and Path(entry).is_dir())
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or file.startswith(installed) or name.partition(".")[0] in PACKAGES or not Path(file).is_file():
            continue
        found = Path(file)
        yield from found.parent.rglob("*.py") if found.name == "__init__.py" else found.parent.glob("*.py")


def _installed() -> tuple[str, ...]:
    """Return the folders of the Python installation, which workers find without help."""
    return tuple({sys.prefix, sys.base_prefix, sys.exec_prefix})

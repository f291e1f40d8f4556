"""An unprivileged user, and a Python environment with this project that such a user can read."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["NOBODY", "UnprivilegedUser", "unprivileged_python"]

NOBODY = 65534
ROOT = Path(__file__).parents[2]
OURS = ("protocols", "topologies", "sim", "emu", "experiments", "mcastlab")
LOADED = (
    "import sys, experiments.cli, experiments.commands.run, experiments.commands.doctor, experiments.search.search, "
    "experiments.compare.twin.worlds, mininet.net, mininet.nodelib, distutils.version; "
    "print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
)
"""Prints the packages that a run takes."""
HEAVY = shutil.ignore_patterns("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "__pycache__", "*.a")


def _link(source: str, target: str) -> None:
    """Hard-link a file, or copy it where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _plant(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=_link, ignore=HEAVY)
    elif source.exists():
        _link(str(source), str(target))


class UnprivilegedUser:
    """Runs commands as an unprivileged user, with a Python of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._python = home / "python" / "bin" / "python3"

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run Python with these arguments and the project on its path."""
        environment = {
            # PATH of an ordinary user, without the folders of administrative programs.
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home / "own"),
            "PYTHONHOME": str(self.home / "python"),
            "PYTHONPATH": f"{self.home / 'project'}:{self.home / 'packages'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": str(self.home / "python" / "lib"),
        }
        return subprocess.run(
            [str(self._python), *words],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd=self.home / "own",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )


@contextmanager
def unprivileged_python() -> Iterator[UnprivilegedUser]:
    """Make a folder with everything that such a user needs, and remove it afterwards."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(0o755)
        base, version = Path(sys.base_prefix), f"python{sys.version_info.major}.{sys.version_info.minor}"
        for folder in ("python/bin", "python/lib", "packages", "project", "own"):
            (home / folder).mkdir(parents=True)
        _plant(Path(os.path.realpath(sys.executable)), home / "python" / "bin" / "python3")
        _plant(base / "lib" / version, home / "python" / "lib" / version)
        for library in (base / "lib").glob("libpython*"):
            _plant(library, home / "python" / "lib" / library.name)
        for package in OURS:
            _plant(ROOT / package, home / "project" / package)
        _plant_packages(home / "packages")
        os.chown(home / "own", NOBODY, NOBODY)
        yield UnprivilegedUser(home)


def _plant_packages(target: Path) -> None:
    """Copy the installed packages that a run loads."""
    output = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    wanted = output.stdout.split()
    site = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    for name in wanted:
        for entry in (name, f"{name}.libs", f"{name}.py", *(path.name for path in site.glob(f"{name}.*.so"))):
            if (site / entry).exists() and not (target / entry).exists():
                _plant(site / entry, target / entry)

"""Requirements of tests on this machine, each checked once."""

import ctypes
import os
import shutil
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from emu.namespaces import run_isolated
from emu.peers.brokers import BROKERS
from emu.requirements import KERNEL, check_kernel, check_tools
from experiments.sweep.run.spark_session import JAVA_PACKAGE, check_java, check_pyspark
from protocols.errors import UnsupportedError
from tests.support.browser import find_chromium

__all__ = ["ACTIVEMQ", "missing"]

ACTIVEMQ = Path("/usr/share/java")
"""Folder of the Java archives of ActiveMQ and what it needs."""

_APT = "sudo apt-get install -y --no-install-recommends"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@cache
def missing(name: str) -> str | None:
    """Return why `name` (like "emulation" or "tshark") is unavailable and how to install it; None if it is available."""
    reasons: dict[str, Callable[[], str | None]] = {
        "emulation": _emulation,
        "libnorm1": _libnorm1,
        "tshark": _tshark,
        "chromium": _chromium,
        "linux.uml": _user_mode_linux,
        "spark": _spark,
        "docs": _docs,
        "activemq": _activemq,
        "mosquitto": lambda: _broker("mosquitto"),
        "stomp.py": _stomp,
    }
    return reasons[name]()


def _emulation() -> str | None:
    try:
        check_tools()
        run_isolated(lambda: check_kernel(KERNEL))
    except UnsupportedError as error:
        return str(error)
    return None


def _libnorm1() -> str | None:
    try:
        ctypes.CDLL("libnorm.so.1")
    except OSError:
        return f"needs NRL's NORM library: {_APT} libnorm1"
    return None


def _tshark() -> str | None:
    return None if shutil.which("tshark") else f"needs tshark: {_APT} tshark"


def _chromium() -> str | None:
    return None if find_chromium() else f"needs a browser: {_APT} chromium"


def _spark() -> str | None:
    try:
        check_pyspark()
        check_java()
    except UnsupportedError as error:
        return str(error)
    return None


def _stomp() -> str | None:
    return None if find_spec("stomp") else "needs stomp.py: pip install stomp.py"


def _activemq() -> str | None:
    packages = {
        "libactivemq-java": ACTIVEMQ.joinpath("activemq-client.jar").exists(),
        JAVA_PACKAGE: shutil.which("java") is not None,
    }
    lacking = [package for package, is_there in packages.items() if not is_there]
    if lacking:
        return f"needs ActiveMQ: {_APT} {' '.join(lacking)}"
    return None if find_spec("py4j") else "needs py4j: pip install 'mcastlab[spark]'"


def _broker(name: str) -> str | None:
    lacking = BROKERS[name].lacks
    return None if lacking is None else f"needs {lacking}: {_APT} {BROKERS[name].packages}"


def _docs() -> str | None:
    lacking = [name for name in ("mkdocs", "material", "mkdocstrings", "mkdocs_jupyter") if find_spec(name) is None]
    return f"needs {', '.join(lacking)}: pip install 'mcastlab[docs]'" if lacking else None


def _user_mode_linux() -> str | None:
    packages = {"linux.uml": "user-mode-linux", "modprobe": "kmod", "gcc": "gcc libc6-dev"}
    lacking = [package for tool, package in packages.items() if shutil.which(tool, path=_PATH) is None]
    return f"needs a kernel with netem in user mode: {_APT} {' '.join(lacking)}" if lacking else None

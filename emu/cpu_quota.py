"""CPU quotas of emulated hosts, by control groups of the kernel (version 2, or the cpu controller of version 1)."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from emu.namespaces import mount_filesystem
from protocols.errors import UnsupportedError

__all__ = ["CpuQuotas"]

_PERIOD, _LONGEST_PERIOD, _LEAST_TIME = 10_000, 1_000_000, 1_000
"""Microseconds over which the kernel measures a quota, short so that a host is not stopped for long; the least time in it."""
_PREFIX = "mcastlab-"
_ROOT = Path("/run/cgroup")
_END = 2.0
"""Seconds to wait for processes to end."""
_OLD = 60.0
"""Seconds after which a group without processes is one of an emulation that was killed."""


class CpuQuotas:
    """The control groups of one emulation, one for each host that has a quota, in cores.

    The constructor makes them and `close` removes them; those of an emulation that was killed are removed when the next one
    with quotas begins. UnsupportedError if the kernel has no quotas or this user may not set them.
    """

    def __init__(self, quotas: Mapping[str, float]) -> None:
        self._folders: dict[str, Path] = {}
        if not quotas:
            return
        least = _LEAST_TIME / _LONGEST_PERIOD
        for name, cores in quotas.items():
            if cores < least:
                raise UnsupportedError(f"nodes.{name}.quota: {cores:g} can't be emulated; at least {least:g}")
        is_unified = _mount()
        _remove_stale()
        run = os.urandom(4).hex()
        for number, (name, cores) in enumerate(quotas.items()):
            folder = _ROOT / f"{_PREFIX}{run}-{number}"
            try:
                folder.mkdir()
                self._folders[name] = folder
                _limit(folder, cores, is_unified)
            except OSError as error:
                self.close()
                raise UnsupportedError(f"nodes.{name}.quota: the kernel sets no CPU quota ({error.strerror})") from error

    def admit(self, name: str, pid: int) -> None:
        """Put a process of a host under its quota, if it has one."""
        folder = self._folders.get(name)
        if folder is not None:
            (folder / "cgroup.procs").write_text(str(pid))

    def close(self) -> None:
        """Remove the control groups; their processes have ended or are about to."""
        until = time.monotonic() + _END
        for folder in self._folders.values():
            while not _is_removed(folder) and time.monotonic() < until:
                time.sleep(0.01)
        self._folders.clear()


def _is_removed(folder: Path) -> bool:
    """Remove a control group, if no process is in it any more; returns whether it is gone."""
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _mount() -> bool:
    """Mount the control groups with the cpu controller in this mount namespace; returns whether they are of version 2."""
    _ROOT.mkdir(exist_ok=True)
    with suppress(OSError):
        mount_filesystem("cgroup2", _ROOT)
        if "cpu" in (_ROOT / "cgroup.controllers").read_text().split():
            (_ROOT / "cgroup.subtree_control").write_text("+cpu")
            return True
    with suppress(OSError):
        mount_filesystem("cgroup", _ROOT, "cpu")
        if (_ROOT / "cpu.cfs_quota_us").exists() or (_ROOT / "cpu.shares").exists():
            return False
    raise UnsupportedError("nodes: a quota needs root and the cpu controller of the kernel's control groups; leave it out")


def _limit(folder: Path, cores: float, is_unified: bool) -> None:
    period = max(_PERIOD, round(_LEAST_TIME / cores))
    quota = round(cores * period)
    if is_unified:
        (folder / "cpu.max").write_text(f"{quota} {period}")
    else:
        (folder / "cpu.cfs_period_us").write_text(str(period))
        (folder / "cpu.cfs_quota_us").write_text(str(quota))


def _remove_stale() -> None:
    """Remove the groups of emulations that were killed."""
    for folder in _ROOT.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _OLD:
                # Refused by the kernel as long as a process is in it.
                folder.rmdir()

"""Run code in namespaces of its own (namespaces(7)): network, mounts and processes, all removed by the kernel when it ends.

`run_isolated(work)` forks, gives the child new namespaces and calls `work()` there. It needs no root where the kernel lets
users make namespaces. Whatever ends the caller, even SIGKILL, ends everything inside at once: the guard dies with the caller
(PR_SET_PDEATHSIG), process 1 of the PID namespace dies with the guard, and the kernel kills a PID namespace with its process
1.

    caller -- guard (outside, waits) -- process 1 (reaps orphans) -- worker (runs `work`, answers by a pipe)
"""

import ctypes
import errno
import fcntl
import json
import os
import shlex
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from protocols import errors
from protocols.errors import McastlabError, UnsupportedError

__all__ = [
    "IsolatedRunError",
    "bind_file",
    "die_with_parent",
    "mount_filesystem",
    "enter_network_namespace",
    "in_network_namespace",
    "run_isolated",
]

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
_MS_BIND = 0x1000
_MS_REC_PRIVATE = 0x4000 | 0x40000
_PR_SET_PDEATHSIG = 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_LIBC = ctypes.CDLL(None, use_errno=True)


class IsolatedRunError(McastlabError):
    """An unexpected exception in isolated code, or its death; the message is the traceback."""


def run_isolated(work: Callable[[], Any], meanwhile: Callable[[], None] | None = None) -> Any:
    """Call `work()` in new namespaces and return its result, which must be JSON-able.

    `meanwhile()` runs in this process, and has the terminal to itself: Ctrl-C then does not reach `work`.

    Errors of this project are raised again as they are, any other as IsolatedRunError. Raises UnsupportedError if this machine
    permits no namespaces.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    answers, answer = os.pipe()
    caller = os.getpid()
    guard = os.fork()
    if guard == 0:
        os.close(answers)
        if meanwhile is not None:
            os.setsid()
        _guard(work, answer, caller)
    os.close(answer)
    try:
        with open(answers, "rb") as pipe:
            if meanwhile is not None:
                meanwhile()
            reply = pipe.read()
    except BaseException:
        os.kill(guard, signal.SIGKILL)
        raise
    finally:
        os.waitpid(guard, 0)
    return _unpack(reply)


def enter_network_namespace(pid: int) -> None:
    """Move this process into the network namespace of process `pid` (setns(2))."""
    with open(f"/proc/{pid}/ns/net", "rb") as namespace:
        _check(_LIBC.setns(namespace.fileno(), _CLONE_NEWNET), "setns")


@contextmanager
def in_network_namespace(pid: int) -> Iterator[None]:
    """Be in the network namespace of process `pid` within a `with` block; sockets made there stay in that namespace."""
    with open("/proc/self/ns/net", "rb") as home:
        enter_network_namespace(pid)
        try:
            yield
        finally:
            _check(_LIBC.setns(home.fileno(), _CLONE_NEWNET), "setns")


def _unpack(reply: bytes) -> Any:
    if not reply:
        raise IsolatedRunError("the isolated process was killed from outside")
    answer = json.loads(reply)
    if "error" in answer:
        kind = getattr(errors, answer["error"], IsolatedRunError)
        raise kind(answer["message"])
    return answer["result"]


def _guard(work: Callable[[], Any], answer: int, caller: int) -> None:
    """Run the process outside: make the namespaces, then wait until they are empty."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _unshare()
        # After unshare: the kernel clears PR_SET_PDEATHSIG when a process changes its credentials.
        die_with_parent()
        if os.getppid() != caller:
            return
        lifeline, held = os.pipe()
        init = os.fork()
        if init == 0:
            os.close(held)
            _run_init(work, answer, lifeline)
        os.close(answer)
        os.waitpid(init, 0)
    except McastlabError as error:
        _reply(answer, _failure(error))
    finally:
        os._exit(0)


def _run_init(work: Callable[[], Any], answer: int, lifeline: int) -> None:
    """Run process 1 of the PID namespace; when it ends, the kernel kills all others. `lifeline` closes when the guard ends."""
    try:
        die_with_parent()
        os.set_blocking(lifeline, False)
        with suppress(BlockingIOError):
            os.read(lifeline, 1)
            return
        _mount_filesystems()
        worker = os.fork()
        if worker == 0:
            _run_worker(work, answer)
        os.close(answer)
        while os.wait()[0] != worker:
            pass
    except OSError as error:
        text = f"emulation: {error.strerror}; run as root on a machine where namespaces may mount /proc and /sys"
        _reply(answer, _failure(UnsupportedError(text)))
    finally:
        os._exit(0)


def _run_worker(work: Callable[[], Any], answer: int) -> None:
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _leave_removed_folder()
        reply = json.dumps({"result": work()})
    except BaseException as error:  # noqa: BLE001 - reported to the caller, which raises it
        reply = _failure(error)
    try:
        # The caller's buffers were flushed before the fork, so only lines of `work` are left.
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        _reply(answer, reply)
        os._exit(0)


def _leave_removed_folder() -> None:
    """Go to the root folder if the working directory was removed: programs that set up the network can't start in it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir("/")


def _failure(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno in _NO_DESCRIPTORS:
        error = UnsupportedError("emulation: too many open files; allow more, as by ulimit -n 4096")
    name = type(error).__name__
    if isinstance(error, McastlabError) and getattr(errors, name, None) is type(error):
        return json.dumps({"error": name, "message": str(error)})
    if isinstance(error, CalledProcessError):
        said = (error.stderr or "").strip().splitlines()[-1:] or [f"exit status {error.returncode}"]
        text = f"emulation: a command of the set-up failed: {said[0]} ({shlex.join(error.cmd)})"
    else:
        text = "".join(traceback.format_exception(error)).rstrip()
    return json.dumps({"error": IsolatedRunError.__name__, "message": text})


def _reply(answer: int, text: str) -> None:
    with open(answer, "w") as pipe:
        pipe.write(text)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends; the caller must check that the parent has not ended before."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _unshare() -> None:
    wanted = _CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWPID
    if os.geteuid() == 0 and _LIBC.unshare(wanted) == 0:
        return
    uid, gid = os.geteuid(), os.getegid()
    try:
        _check(_LIBC.unshare(wanted | _CLONE_NEWUSER), "unshare")
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError as error:
        raise UnsupportedError(
            f"emulation needs namespaces, which this machine refuses ({error.strerror}); run as root, or allow them to "
            "users: sudo sysctl user.max_user_namespaces=10000 (and, where they exist, "
            "kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0)"
        ) from None


def _mount_filesystems() -> None:
    """Mount fresh /proc, /sys and /run, which otherwise show the machine outside, and bring up the loopback device."""
    _mount("none", "/", None, _MS_REC_PRIVATE)
    _mount("proc", "/proc", "proc", 0)
    _mount("sysfs", "/sys", "sysfs", 0)
    _mount("tmpfs", "/run", "tmpfs", 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack_from("h", fcntl.ioctl(sock, _SIOCGIFFLAGS, request), 16)[0]
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    type_ = kind.encode() if kind else None
    _check(_LIBC.mount(source.encode(), target.encode(), type_, ctypes.c_ulong(flags), None), f"mounting {kind} on {target}")


def mount_filesystem(kind: str, where: Path, options: str = "") -> None:
    """Mount a file system of a kind, in this mount namespace (mount(2)). OSError when the kernel refuses."""
    result = _LIBC.mount(kind.encode(), str(where).encode(), kind.encode(), ctypes.c_ulong(0), options.encode() or None)
    _check(result, f"mounting {kind} on {where}")


def bind_file(source: str, target: str) -> None:
    """Show the file `source` in place of the file `target`, in this mount namespace (mount(2), MS_BIND)."""
    _mount(source, target, None, _MS_BIND)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno() or errno.EIO
        raise OSError(code, f"{what}: {os.strerror(code)}")

"""The processes behind an emulation's links in user space: started with the network, asked at the end how it went."""

import fcntl
import json
import os
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from emu.userspace_link import LinkDirection, serve
from protocols.errors import McastlabError, WireError
from protocols.machine import Codec, Message

__all__ = ["LinkProcesses", "LinkProcessError"]

_TIMEOUT = 10.0
_MAX_DIRECTIONS, _FD_SETSIZE = 800, 1024
"""Directions one process carries, and the numbers of descriptors `select` knows."""


class LinkProcessError(McastlabError):
    """A process behind links in user space came to grief; the message says how."""


class _UnknownTraffic:
    """A codec for networks whose traffic nobody described."""

    def encode(self, message: Message) -> bytes:
        """Nothing is sent."""
        raise WireError(f"{message.kind} has no bytes here")

    def decode(self, data: bytes) -> Message:
        """Nothing is known."""
        raise WireError(f"{len(data)} bytes of an unknown kind")


class LinkProcesses:
    """Carries frames in one process for each core that the hosts leave free, and one at least; impairs them after `begin`.

    The descriptors of the ways are closed here, so that the devices go with the processes.
    """

    def __init__(self, directions: Sequence[LinkDirection], codec: Callable[[], Codec] | None) -> None:
        processes = min(len(directions) // 2, max((os.cpu_count() or 1) - 1, -(-len(directions) // _MAX_DIRECTIONS)))
        # Both directions of a link stand side by side and stay together, since each reads what the other writes to.
        pairs = [directions[at : at + 2] for at in range(0, len(directions), 2)]
        shares = [
            [direction for pair in islice(pairs, first, None, processes) for direction in pair] for first in range(processes)
        ]
        self._controls = [_fork(share, _UnknownTraffic() if codec is None else codec()) for share in shares]
        for direction in directions:
            os.close(direction.source)

    def begin(self) -> None:
        """From now on the links do what they are to do; before, everything passes at once and is not counted."""
        for control in self._controls:
            control.sendall(b"b")
        for control in self._controls:
            if not control.recv(1):
                raise LinkProcessError("a process behind links in user space was killed before the run began")

    def collect(self) -> list[Mapping[str, Any]]:
        """End the processes; their reports (`Forwarder.report`)."""
        return [_collect(control) for control in self._controls]


def _fork(directions: Sequence[LinkDirection], codec: Codec) -> socket.socket:
    local, remote = socket.socketpair()
    if os.fork() == 0:
        try:
            serve(_close_inherited(directions, remote.fileno()), codec, remote)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the runner is told, and the run fails
            text = "".join(traceback.format_exception(error)).rstrip()
            remote.sendall(json.dumps({"error": text}).encode())
        finally:
            os._exit(0)
    remote.close()
    return local


def _close_inherited(directions: Sequence[LinkDirection], control: int) -> list[LinkDirection]:
    """Close what this process inherited and does not need, and move the rest to numbers that `select` knows."""
    needed = {direction.source for direction in directions}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in needed and int(name) not in (0, 1, 2, control):
            # The listing itself had a descriptor, which is closed by now.
            with suppress(OSError):
                os.close(int(name))
    moved = {number: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) if number >= _FD_SETSIZE else number for number in needed}
    return [replace(direction, source=moved[direction.source], target=moved[direction.target]) for direction in directions]


def _collect(control: socket.socket) -> Mapping[str, Any]:
    control.settimeout(_TIMEOUT)
    control.shutdown(socket.SHUT_WR)
    with control, control.makefile("rb") as file:
        text = file.read()
    if not text:
        raise LinkProcessError("a process behind links in user space was killed")
    report: dict[str, Any] = json.loads(text)
    if "error" in report:
        raise LinkProcessError(f"a process behind links in user space ended: {report['error']}")
    return report

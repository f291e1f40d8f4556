"""The processes behind an emulation's user-space links: started with the network, their reports collected at the end."""

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
"""Most directions of links in one process, and the limit of descriptor numbers of select(2)."""


class LinkProcessError(McastlabError):
    """A process behind user-space links failed; the message says how."""


class _UnknownTraffic:
    """Codec of networks whose protocol is not known: decodes nothing."""

    def encode(self, message: Message) -> bytes:
        """Raise WireError."""
        raise WireError(f"{message.kind}: this network's protocol is not known")

    def decode(self, data: bytes) -> Message:
        """Raise WireError."""
        raise WireError(f"{len(data)} bytes of an unknown protocol")


class LinkProcesses:
    """Forward the frames of user-space links; impair them after `begin`.

    There is one process for each CPU core but one, and at least one. The descriptors of the directions are closed in this
    process, so the TAP devices vanish with the processes.
    """

    def __init__(self, directions: Sequence[LinkDirection], codec: Callable[[], Codec] | None) -> None:
        processes = min(len(directions) // 2, max((os.cpu_count() or 1) - 1, -(-len(directions) // _MAX_DIRECTIONS)))
        # Both directions of a link are adjacent and go to one process: each writes to the descriptor the other reads.
        pairs = [directions[at : at + 2] for at in range(0, len(directions), 2)]
        shares = [
            [direction for pair in islice(pairs, first, None, processes) for direction in pair] for first in range(processes)
        ]
        self._controls = [_fork(share, _UnknownTraffic() if codec is None else codec()) for share in shares]
        for direction in directions:
            os.close(direction.source)

    def begin(self) -> None:
        """Start impairing and counting; before, every frame is forwarded at once and not counted.

        Raises LinkProcessError if a process has died.
        """
        for control in self._controls:
            control.sendall(b"b")
        for control in self._controls:
            if not control.recv(1):
                raise LinkProcessError("a process of user-space links was killed before the run began")

    def collect(self) -> list[Mapping[str, Any]]:
        """End the processes and return their reports (`FrameForwarder.report`). Raises LinkProcessError if one has failed."""
        return [_collect(control) for control in self._controls]


def _fork(directions: Sequence[LinkDirection], codec: Codec) -> socket.socket:
    local, remote = socket.socketpair()
    if os.fork() == 0:
        try:
            serve(_close_inherited(directions, remote.fileno()), codec, remote)
        except BaseException as error:  # noqa: BLE001 - reported to the launcher, and the run fails
            text = "".join(traceback.format_exception(error)).rstrip()
            remote.sendall(json.dumps({"error": text}).encode())
        finally:
            os._exit(0)
    remote.close()
    return local


def _close_inherited(directions: Sequence[LinkDirection], control: int) -> list[LinkDirection]:
    """Close inherited descriptors that are not needed, and move the others below the limit of select(2)."""
    needed = {direction.source for direction in directions}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in needed and int(name) not in (0, 1, 2, control):
            # The listing's own descriptor is closed already.
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
        raise LinkProcessError("a process of user-space links was killed")
    report: dict[str, Any] = json.loads(text)
    if "error" in report:
        raise LinkProcessError(f"a process of user-space links failed: {report['error']}")
    return report

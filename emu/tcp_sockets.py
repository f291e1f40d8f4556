"""TCP sockets with the options of a run (tcp(7)): congestion control, segment size, buffers, time-outs."""

import errno
import resource
import socket
import struct
from pathlib import Path

from emu.addresses import SocketAddress, at_port, family_of, text_of
from protocols.connection import Reason
from protocols.errors import UnsupportedError, UsageError
from protocols.tcp.options import KEEP_IDLE, KEEP_INTERVAL, KEEP_PROBES, SILENCE, SYN_RETRIES, TcpOptions

__all__ = [
    "check_options",
    "end_orderly",
    "open_listener",
    "open_socket",
    "reason_of",
    "set_options",
]

_BACKLOG = 1024
_OPEN_FILES = 65536
_SO_RCVBUFFORCE, _SO_SNDBUFFORCE = 33, 32
_IP_BIND_ADDRESS_NO_PORT = 24
_TIME_STAMPS = 12
"""Bytes of the TCP option that a segment carries beside its content; TCP_MAXSEG counts them."""
_RESET = struct.pack("ii", 1, 0)
"""Linger for no time: closing a socket then resets its connection, also when the kernel closes it for a killed process."""
_ORDERLY = struct.pack("ii", 0, 0)
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_UNREACHABLE = {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN}


def check_options(options: TcpOptions) -> None:
    """Raise UnsupportedError if this kernel lacks what the options name."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        set_options(sock, options)


def open_listener(where: SocketAddress, options: TcpOptions | None) -> socket.socket:
    """Return a socket that listens at `where`, whose connections have the options; None leaves them to the kernel.

    Raises UsageError if the port is in use.
    """
    _allow_many_sockets()
    sock = socket.socket(family_of(where[0]), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit the options; window scaling is agreed on before they are accepted.
        set_options(sock, options)
        sock.bind(where)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise UsageError(f"can't listen at {text_of(where)}: {error.strerror}") from None
    except UnsupportedError:
        sock.close()
        raise
    return sock


def open_socket(where: SocketAddress, options: TcpOptions | None) -> socket.socket:
    """Return a socket with the options that connects from the address of `where`. Raises UnsupportedError."""
    _allow_many_sockets()
    sock = socket.socket(family_of(where[0]), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        set_options(sock, options)
        sock.bind(at_port(where, 0))
    except BaseException:
        sock.close()
        raise
    return sock


def _limit_silence(sock: socket.socket) -> None:
    """Set for how long the other end may not answer: the limits of `protocols.tcp.options`."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_SYNCNT, SYN_RETRIES),
        (socket.TCP_KEEPIDLE, round(KEEP_IDLE)),
        (socket.TCP_KEEPINTVL, round(KEEP_INTERVAL)),
        (socket.TCP_KEEPCNT, KEEP_PROBES),
        (socket.TCP_USER_TIMEOUT, round(SILENCE * 1000)),
    ):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def set_options(sock: socket.socket, options: TcpOptions | None) -> None:
    """Set the options of a socket and read them back. Raises UnsupportedError naming the option that the kernel refused."""
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    _limit_silence(sock)
    if options is not None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(not options.nagle))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, options.mss + _TIME_STAMPS)
        _set_control(sock, options.kernel_control)
        _set_buffer(sock, options.buffer)


def end_orderly(sock: socket.socket) -> None:
    """Have the connection end after what was sent, and not with a reset, when the socket is closed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ORDERLY)


def _set_control(sock: socket.socket, control: str) -> None:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        applied = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
    except OSError as error:
        applied = f"{error.strerror}"
    if applied != control:
        raise UnsupportedError(
            f"connections: control {control} is refused by this kernel ({applied}), which has "
            f"{_AVAILABLE.read_text().strip()}: sudo modprobe tcp_{control}"
        )


def _set_buffer(sock: socket.socket, size: int) -> None:
    for option, forced in ((socket.SO_RCVBUF, _SO_RCVBUFFORCE), (socket.SO_SNDBUF, _SO_SNDBUFFORCE)):
        try:
            # The ...FORCE options exceed the system's limit and need CAP_NET_ADMIN.
            sock.setsockopt(socket.SOL_SOCKET, forced, size)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
        # The kernel doubles the value, for its own overhead, and estimates what is left for content.
        if sock.getsockopt(socket.SOL_SOCKET, option) < 2 * size:
            raise UnsupportedError(
                f"connections: buffer {size} is more than this kernel allows: "
                f"sudo sysctl net.core.rmem_max={size} net.core.wmem_max={size}"
            )
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, size)


def reason_of(error: OSError) -> Reason:
    """Return why a connection was closed whose socket failed; an unreachable host is one that does not answer."""
    if error.errno == errno.ECONNREFUSED:
        return "refused"
    return "timeout" if error.errno in _UNREACHABLE else "reset"


def _allow_many_sockets() -> None:
    """Raise the soft limit of open files (getrlimit(2)) as far as the hard one allows: each connection is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if resource.RLIM_INFINITY != soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

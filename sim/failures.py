"""Hosts that end as a crash by what their own machines do: those with less memory than is kept, and machines that fail."""

from collections.abc import Callable

__all__ = ["Failures"]

_MEGABYTE = 1e6


class Failures:
    """The memory limits of hosts, and the handler of failures."""

    def __init__(self) -> None:
        self.memory: dict[str, int] = {}
        """Bytes that the programs of a host may keep; other hosts have no limit."""
        self.on_failure: Callable[[str, str], None] | None = None
        """Called with the name of a host and the reason, within the input of the machine that failed."""
        self._kept: dict[str, dict[int, int]] = {}

    def keep(self, host: str, octets: int, port: int) -> None:
        """Record the bytes that the machine at a port of a host keeps; the host fails if all its ports exceed its limit."""
        limit = self.memory.get(host)
        if limit is None:
            return
        ports = self._kept.setdefault(host, {})
        ports[port] = octets
        kept = sum(ports.values())
        if kept > limit:
            ports.clear()
            self.fail(host, f"out of memory: it has {limit / _MEGABYTE:g} MB")

    def fail(self, host: str, reason: str) -> None:
        """End the programs of a host."""
        assert self.on_failure is not None, f"{host} fails ({reason}), and no handler is set"
        self.on_failure(host, reason)

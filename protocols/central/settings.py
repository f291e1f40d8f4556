"""Parameters of clients that connect to a server, the same in every protocol with one."""

from typing import Any

from protocols.settings import setting

__all__ = ["first_retry", "longest_retry"]


def first_retry() -> Any:
    """Return the parameter `retry`, in seconds."""
    words = "time to the first attempt to connect again, doubled by each that fails"
    return setting(0.2, "seconds", 1e-3, 1e6, help=words, at_most="retry_max")


def longest_retry() -> Any:
    """Return the parameter `retry_max`, in seconds."""
    return setting(5.0, "seconds", 1e-3, 1e6, help="longest time between attempts to connect")

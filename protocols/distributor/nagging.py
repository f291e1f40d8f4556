"""The nagging monitor: whether a connection has requested retransmissions all the time for too long.

The README's pseudo-code, read as its text means it: at the end of each window, requests made in it are added to the total, and
a window without any begins anew. When windows with requests have filled the check interval, the total decides.
"""

__all__ = ["NaggingMonitor"]


class NaggingMonitor:
    """Counts requests in windows of `window` seconds; `check` is in seconds, `most` in requests."""

    __slots__ = ("_check", "_in_window", "_most", "_total", "_window", "_windows")

    def __init__(self, window: float, check: float, most: int) -> None:
        self._window = window
        self._check = check
        self._most = most
        self._in_window = self._total = self._windows = 0

    def count(self) -> None:
        """Count a request."""
        self._in_window += 1

    def end_window(self) -> int | None:
        """End a window; return the total of requests if there were too many, else None. Always None with a window of 0."""
        requests, self._in_window = self._in_window, 0
        if not requests or not self._window:
            self._total = self._windows = 0
            return None
        self._total += requests
        self._windows += 1
        if self._windows * self._window < self._check:
            return None
        total, self._total, self._windows = self._total, 0, 0
        return total if total >= self._most else None

"""Times as text: as on a stop watch, and of the day."""

import time

__all__ = ["clock", "time_of_day"]


def clock(seconds: float) -> str:
    """Format seconds: 75.2 is "1:15"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def time_of_day(at: float, date: str = "") -> str:
    """Return Unix seconds as local time with milliseconds, "21:51:54.346"; `date` is a format of strftime in front of it."""
    return time.strftime(f"{date}%H:%M:%S", time.localtime(at)) + f".{int(at * 1000) % 1000:03d}"

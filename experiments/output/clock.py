"""Times as on a stop watch."""

__all__ = ["clock"]


def clock(seconds: float) -> str:
    """Format seconds: 75.2 is "1:15"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

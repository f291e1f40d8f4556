"""Packets offered to queues at random times."""

from hypothesis import strategies as st

STEPS = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]), st.integers(1, 400)), max_size=40)
"""Packets as (seconds since the packet before, bytes)."""


def timed(steps: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return the packets as (time in seconds, bytes)."""
    now, offers = 0.0, []
    for gap, size in steps:
        now += gap
        offers.append((now, size))
    return offers

"""Damage to encoded messages: bits flipped, bytes changed, parts cut out, repeated or inserted, lengths that lie."""

from collections.abc import Sequence

from hypothesis import strategies as st

__all__ = ["DAMAGES", "Damage", "damaged"]

Damage = tuple[str, int, int, bytes]
"""What is done, where, to how many bytes, and bytes that are put there. The place counts from either end of the message."""
DAMAGES: st.SearchStrategy[list[Damage]] = st.lists(
    st.tuples(
        st.sampled_from(("flip", "set", "cut", "end", "repeat", "insert")),
        st.integers(-300, 300),
        st.integers(1, 40),
        st.binary(min_size=1, max_size=8)
        | st.sampled_from([b"\0", b"\0\0", b"\xff\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"]),
    ),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, damages: Sequence[Damage]) -> bytes:
    """Return `data` after each damage in turn."""
    for name, place, count, new in damages:
        at = place % len(data) if data else 0
        end = min(at + count, len(data))
        if name == "flip":
            data = data[:at] + bytes(byte ^ 1 << count % 8 for byte in data[at : at + 1]) + data[at + 1 :]
        elif name == "set":
            data = data[:at] + new + data[at + len(new) :]
        elif name == "cut":
            data = data[:at] + data[end:]
        elif name == "end":
            data = data[:at]
        elif name == "repeat":
            data = data[:end] + data[at:end] + data[end:]
        else:
            data = data[:at] + new + data[at:]
    return data

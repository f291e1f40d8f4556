"""Bytes are cut into the messages that were written, however they arrive."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.session import boundaries
from experiments.session.boundaries import LENGTH, LONGEST, Boundary, MessageCutter


def cut(boundary: Boundary, pieces: list[bytes]) -> list[bytes]:
    """Return the messages of pieces, and what is left at the end."""
    cutter = MessageCutter(boundary)
    found = [message for piece in pieces for message in cutter.feed(piece)]
    return [*found, *filter(None, [cutter.rest()])]


@settings(max_examples=100, deadline=None)
@given(messages=st.lists(st.binary(max_size=50), max_size=20), seed=st.integers(0, 2**32))
def test_any_division_into_pieces_gives_the_same_messages(messages: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    framed = [len(message).to_bytes(LENGTH, "big") + message for message in messages]
    lines = [message.replace(b"\n", b"") + b"\n" for message in messages]
    for boundary, wanted in (("message", framed), ("line", lines)):
        whole, pieces = b"".join(wanted), []
        while whole:
            size = chance.randrange(1, 30)
            pieces.append(whole[:size])
            whole = whole[size:]
        assert cut(boundary, pieces) == wanted  # type: ignore[arg-type]


def test_a_line_without_an_end_is_passed_on_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "LONGEST", 10)
    cutter = MessageCutter("line")
    assert (cutter.feed(b"x" * 8), cutter.continues) == ([], False)
    assert (cutter.feed(b"y" * 8), cutter.continues) == ([b"x" * 8 + b"y" * 8], False)
    # What follows continues this line, and the one after it begins.
    assert (cutter.feed(b"z\nnext\n"), cutter.continues) == ([b"z\n", b"next\n"], True)
    assert (cutter.feed(b"a\n"), cutter.continues) == ([b"a\n"], False)


def test_the_longest_message_is_cut_and_a_longer_one_is_an_error() -> None:
    whole = LONGEST.to_bytes(LENGTH, "big") + bytes(LONGEST)
    pieces = [whole[at : at + 65536] for at in range(0, len(whole), 65536)]
    assert cut("message", pieces) == [whole]
    with pytest.raises(ValueError, match=f"at most {LONGEST}"):
        MessageCutter("message").feed((LONGEST + 1).to_bytes(LENGTH, "big"))

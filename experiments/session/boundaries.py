"""Where messages begin in a stream of bytes: at lines, at a length before each, or nowhere."""

from typing import Literal, TypeAlias

__all__ = ["BOUNDARIES", "LENGTH", "LONGEST", "Boundary", "MessageCutter"]

Boundary: TypeAlias = Literal["line", "message", "byte"]
"""Where messages begin: after each line feed; by a length of four bytes, big-endian, before each; nowhere."""
BOUNDARIES: tuple[Boundary, ...] = ("line", "message", "byte")
LENGTH = 4
LONGEST = 16 << 20
"""Bytes of the longest message; a longer line is passed on in pieces."""


class MessageCutter:
    """Cuts bytes into messages. `boundary` says where they begin; a message keeps its length or line feed."""

    __slots__ = ("_boundary", "_is_inside", "_needed", "_parts", "_size", "continues")

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._parts: list[bytes] = []
        self._size = 0
        # Bytes without which the next message is not complete; parts are not joined before, which would cost the square.
        self._needed = LENGTH
        self._is_inside = False
        self.continues = False
        """Whether the first piece of the last `feed` continues a line that was too long for one piece."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are complete with `data`; what is left waits.

        ValueError for one that is too long; where others came before it in `data`, the next call raises it.
        """
        self.continues = self._is_inside
        if self._boundary == "byte":
            return [data] if data else []
        self._parts.append(data)
        self._size += len(data)
        return self._lines(data) if self._boundary == "line" else self._messages()

    def rest(self) -> bytes:
        """Return the bytes of an unfinished message, and forget them."""
        left = b"".join(self._parts)
        self._parts, self._size, self._needed, self._is_inside = [], 0, LENGTH, False
        return left

    def _lines(self, data: bytes) -> list[bytes]:
        found = []
        if b"\n" in data:
            *lines, left = self.rest().split(b"\n")
            found = [line + b"\n" for line in lines]
            self._parts, self._size = [left], len(left)
        if self._size > LONGEST:
            found.append(self.rest())
            self._is_inside = True
        return found

    def _messages(self) -> list[bytes]:
        if self._size < self._needed:
            return []
        whole, found, at = self.rest(), list[bytes](), 0
        while at + LENGTH <= len(whole):
            length = int.from_bytes(whole[at : at + LENGTH], "big")
            if length > LONGEST and found:
                # Those before it come first.
                break
            if length > LONGEST:
                raise ValueError(f"a message of {length} bytes; at most {LONGEST}")
            self._needed = LENGTH + length
            if at + self._needed > len(whole):
                break
            found.append(whole[at : at + self._needed])
            at += self._needed
            self._needed = LENGTH
        self._parts, self._size = [whole[at:]], len(whole) - at
        return found

"""How often single links of a group carried an identity more or less often than the group, in little memory."""

__all__ = ["Differences"]


class Differences:
    """Differences by identity and member: how many times more, or fewer (negative), the member's link carried the identity.

    Differences of 1 and -1 are bits of two masks for each member and window of 256 identities; others are kept one by one.
    """

    __slots__ = ("_beyond", "_changed", "_masks")

    def __init__(self) -> None:
        # By window: the identities whose difference was ever changed for any member.
        self._changed: dict[int, int] = {}
        # By window and member: the identities with a difference of 1, and those with -1. A bit in both stands for `_beyond`.
        self._masks: dict[int, dict[int, tuple[int, int]]] = {}
        # All other differences but 0, by identity and member.
        self._beyond: dict[tuple[int, int], int] = {}

    def __bool__(self) -> bool:
        return bool(self._changed)

    def among(self, identity: int, count: int) -> bool:
        """Return whether any difference of these consecutive identities of one window was ever changed."""
        return self._changed.get(identity >> 8, 0) >> (identity & 255) & (1 << count) - 1 != 0

    def of(self, identity: int) -> list[tuple[int, int]]:
        """Return the members whose links carried an identity more or less often than the group, and by how much."""
        bit = 1 << (identity & 255)
        return [
            (member, self._difference(identity, member, bool(more & bit), bool(less & bit)))
            for member, (more, less) in self._masks.get(identity >> 8, {}).items()
            if (more | less) & bit
        ]

    def change(self, identity: int, member: int, step: int) -> int:
        """Add `step` to the difference of a member's link; returns the difference."""
        window, bit = identity >> 8, 1 << (identity & 255)
        self._changed[window] = self._changed.get(window, 0) | bit
        masks = self._masks.setdefault(window, {})
        more, less = masks.get(member, (0, 0))
        difference = self._difference(identity, member, bool(more & bit), bool(less & bit)) + step
        is_beyond = abs(difference) > 1
        if is_beyond:
            self._beyond[identity, member] = difference
        masks[member] = (
            more | bit if difference == 1 or is_beyond else more & ~bit,
            less | bit if difference == -1 or is_beyond else less & ~bit,
        )
        return difference

    def leave_out(self, identity: int, count: int, member: int) -> None:
        """Subtract one from the differences of a member's link for consecutive identities of one window."""
        if self.among(identity, count):
            for each in range(identity, identity + count):
                self.change(each, member, -1)
            return
        window, bits = identity >> 8, (1 << count) - 1 << (identity & 255)
        self._changed[window] = self._changed.get(window, 0) | bits
        masks = self._masks.setdefault(window, {})
        more, less = masks.get(member, (0, 0))
        masks[member] = more, less | bits

    def _difference(self, identity: int, member: int, more: bool, less: bool) -> int:
        return self._beyond[identity, member] if more and less else more - less

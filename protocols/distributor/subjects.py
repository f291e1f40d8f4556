"""Subjects: names of levels, each behind a "/", and patterns in which "*" stands for one level and "..." for one or more.

Wildcards are whole levels: "/foo/ba*" is an ordinary name. What stands before the first "/" of a name does not count.
"""

from typing import Generic, TypeVar

from protocols.errors import UsageError

__all__ = ["ONE_LEVEL", "REST", "SubjectTrie", "check_pattern", "check_subject", "has_encoding", "levels_of", "matches"]

ONE_LEVEL, REST = "*", "..."
MOST_REMEMBERED = 10_000
"""Subjects whose matches a trie remembers."""

V = TypeVar("V")


def levels_of(name: str) -> list[str]:
    """Return the levels of a subject or pattern; without a "/" there are none."""
    return name.split("/")[1:]


def has_encoding(text: str) -> bool:
    """Return whether UTF-8 can hold a text; half of a surrogate pair has no encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_subject(subject: str) -> None:
    """Raise UsageError for a subject that can't be published."""
    if not subject.startswith("/"):
        raise UsageError(f"subject {subject!r} does not begin with '/'")
    if not has_encoding(subject):
        raise UsageError(f"subject {subject!r} is no text that UTF-8 can hold")
    for wildcard in (ONE_LEVEL, REST):
        if wildcard in subject:
            raise UsageError(f"subject {subject!r} has {wildcard!r}; only subscriptions have wildcards")


def check_pattern(pattern: str) -> list[str]:
    """Return the levels of a pattern. UsageError for one that no subject can match."""
    levels = levels_of(pattern)
    if not levels:
        raise UsageError(f"subscription {pattern!r} has no '/'; it is like /quotes/ABB or /quotes/*")
    if not has_encoding(pattern):
        raise UsageError(f"subscription {pattern!r} is no text that UTF-8 can hold")
    if REST in levels[:-1]:
        raise UsageError(f"subscription {pattern!r}: nothing can follow '{REST}'")
    return levels


def matches(pattern: str, subject: str) -> bool:
    """Return whether a subject matches a pattern."""
    trie: SubjectTrie[None] = SubjectTrie()
    trie.add(pattern, None)
    return bool(trie.match(subject))


class _Node(Generic[V]):
    """A level of patterns: what follows it by name, by "*", and the values of the patterns that end here or in "..."."""

    __slots__ = ("any", "children", "here", "rest")

    def __init__(self) -> None:
        self.children: dict[str, _Node[V]] = {}
        self.any: _Node[V] | None = None
        self.here: list[V] = []
        self.rest: list[V] = []

    def is_empty(self) -> bool:
        """Return whether no pattern has this level."""
        return not (self.children or self.here or self.rest or self.any)


class SubjectTrie(Generic[V]):
    """Patterns with a value each; a match costs the levels of the subject, however many patterns there are."""

    __slots__ = ("_remembered", "_root", "_size")

    def __init__(self) -> None:
        self._root: _Node[V] = _Node()
        self._size = 0
        self._remembered: dict[str, tuple[V, ...]] = {}

    def __len__(self) -> int:
        return self._size

    def add(self, pattern: str, value: V) -> None:
        """Add a pattern with its value; an equal pattern keeps its own. UsageError for an impossible pattern."""
        node, levels = self._root, check_pattern(pattern)
        for level in levels[:-1] if levels[-1] == REST else levels:
            if level != ONE_LEVEL:
                node = node.children.setdefault(level, _Node())
                continue
            if node.any is None:
                node.any = _Node()
            node = node.any
        (node.rest if levels[-1] == REST else node.here).append(value)
        self._size += 1
        self._remembered.clear()

    def remove(self, pattern: str, value: V) -> None:
        """Remove a pattern that was added with this value. UsageError if it was not."""
        node, levels = self._root, check_pattern(pattern)
        path: list[tuple[_Node[V], str]] = []
        for level in levels[:-1] if levels[-1] == REST else levels:
            path.append((node, level))
            following = node.any if level == ONE_LEVEL else node.children.get(level)
            if following is None:
                raise UsageError(f"there is no subscription to {pattern!r}")
            node = following
        values = node.rest if levels[-1] == REST else node.here
        if value not in values:
            raise UsageError(f"there is no subscription to {pattern!r} with the value {value!r}")
        values.remove(value)
        self._size -= 1
        self._remembered.clear()
        for parent, level in reversed(path):
            if not node.is_empty():
                return
            if level == ONE_LEVEL:
                parent.any = None
            else:
                del parent.children[level]
            node = parent

    def match(self, subject: str) -> tuple[V, ...]:
        """Return the values of the patterns that a subject matches."""
        known = self._remembered.get(subject)
        if known is None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[subject] = self._find(subject)
        return known

    def _find(self, subject: str) -> tuple[V, ...]:
        levels = levels_of(subject)
        if not levels:
            return ()
        found: list[V] = []
        nodes = [self._root]
        for level in levels:
            following = []
            for node in nodes:
                if node.rest:
                    found += node.rest
                child = node.children.get(level)
                if child is not None:
                    following.append(child)
                if node.any is not None:
                    following.append(node.any)
            if not following:
                return tuple(found)
            nodes = following
        for node in nodes:
            found += node.here
        return tuple(found)

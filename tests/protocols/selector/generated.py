"""Random selectors whose comparisons are of like types, and random messages for them."""

from hypothesis import strategies as st

from protocols.selector.tree import (
    All,
    Any,
    Arithmetic,
    Between,
    Comparison,
    Contained,
    Like,
    Literal,
    Negated,
    Negative,
    Node,
    Null,
    Property,
)

NUMBERS, FRACTIONS, TEXTS, FLAGS = ("i", "j"), ("x", "y"), ("s", "t"), ("f", "g")
"""Properties by type."""
WORDS = ("", "a", "ab", "b'c", "a%b", "a_b", "ba")

texts = st.sampled_from(WORDS)
numbers = st.integers(-5, 5).map(Literal) | st.sampled_from(NUMBERS).map(Property)
# Eighths are exact, so that no two ways of rounding differ.
fractions = st.integers(-40, 40).map(lambda eighths: Literal(eighths / 8)) | st.sampled_from(FRACTIONS).map(Property)


def _sums(leaves: st.SearchStrategy[Node], operators: str) -> st.SearchStrategy[Node]:
    """Return trees of these operations; with "*" also other signs."""

    def extended(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        joined = st.builds(Arithmetic, inner, st.sampled_from(operators), inner)
        return joined | st.builds(Negative, inner.filter(_is_no_constant)) if "*" in operators else joined

    return st.recursive(leaves, extended, max_leaves=4)


def _is_no_constant(node: Node) -> bool:
    """Return whether a sign before a node is an operation, not part of a number."""
    return not isinstance(node, Literal)


operators = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
words = texts.map(Literal) | st.sampled_from(TEXTS).map(Property)
patterns = st.lists(st.sampled_from(("a", "b", "_", "%", "'", "!_", "!%", "!!")), max_size=4).map("".join)
text_properties = st.sampled_from(TEXTS).map(Property)


def selectors(whole: str, fractional: str) -> st.SearchStrategy[Node]:
    """Return random selectors whose whole numbers and fractions are joined by these operations."""
    values = _sums(numbers, whole) | _sums(fractions, fractional)
    tests = (
        st.builds(Comparison, values, operators, values)
        | st.builds(Comparison, words, st.sampled_from(("=", "<>")), words)
        | st.builds(Between, values, values, values)
        | st.builds(Contained, text_properties, st.lists(texts, min_size=1, max_size=3).map(tuple))
        | st.builds(Like, text_properties, patterns, st.sampled_from(("", "!")))
        | st.builds(Null, st.sampled_from(NUMBERS + FRACTIONS + TEXTS + FLAGS).map(Property))
        | st.sampled_from(FLAGS).map(Property)
        | st.booleans().map(Literal)
    )
    return st.recursive(tests, _joined, max_leaves=6)


def _joined(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    terms = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(Negated, inner) | st.builds(All, terms) | st.builds(Any, terms)


_fields = {
    **dict.fromkeys(NUMBERS, st.integers(-5, 5)),
    **dict.fromkeys(FRACTIONS, st.integers(-40, 40).map(lambda eighths: eighths / 8)),
    **dict.fromkeys(TEXTS, texts),
    **dict.fromkeys(FLAGS, st.booleans()),
}
messages = st.fixed_dictionaries({}, optional=_fields)
whole_messages = st.fixed_dictionaries(_fields)
"""Messages with all properties."""

"""Selectors of JMS 1.1 (3.8.1): what they are true of, and what is said of texts that are none."""

from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.selector import MOST_LONG, SHORT, Fields, SelectorError, selector
from protocols.selector.parser import parse
from protocols.selector.tree import Node
from tests.protocols.selector.generated import selectors

MESSAGE: Fields = {"JMSType": "car", "colour": "blue", "weight": 2500, "price": 9.5, "is_new": True, "$x_1": "a"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "JMSType = 'car' AND colour = 'blue' AND weight > 2500 - 1",
        "weight BETWEEN 2500 AND 2500.0",
        "weight NOT BETWEEN 1 AND 2 * 1249",
        "colour IN ('red', 'blue')",
        "colour NOT IN ('red')",
        "colour LIKE 'b%e' and colour not like '_'",
        "missing IS NULL AND colour IS NOT NULL",
        "is_new",
        "is_new = TRUE and not is_new <> true",
        "$x_1 = 'a'",
        "price = 9.5 AND price > 9 AND price < 1e1 AND 95 / 10.0 = price",
        "weight / 1000 = 2 AND -weight / 1000 = -2",
        "9223372036854775807 + 1 = -9223372036854775808",
        "0x9C4 = weight and 04704 = weight and 2500L = weight",
        "1 / 0.0 > weight and -1 / 0.0 < weight",
        "colour = 'blue' OR missing = 1 AND missing = 2",
        "NOT (colour = 3)",
        "missing = 1 OR is_new",
        "NOT (missing = 1 AND colour = 'red')",
        "weight=2500or price=1",
    ],
)
def test_true(text: str) -> None:
    assert selector(text).selects(MESSAGE)


@pytest.mark.parametrize(
    "text",
    [
        "Colour = 'blue'",
        "colour = 'Blue'",
        "colour = 3 OR colour <> 3",
        "missing = 1",
        "NOT (missing = 1)",
        "missing <> 1",
        "missing LIKE '%' OR missing IN ('a') OR missing BETWEEN 0 AND 9",
        "NOT missing LIKE '%'",
        "missing",
        "weight",
        "colour + 1 = 2 OR NOT (colour + 1 = 2)",
        "weight / 0 = 1 OR weight / 0 <> 1",
        "colour > price",
        "weight LIKE '2%'",
        "FALSE",
    ],
)
def test_not_true(text: str) -> None:
    assert not selector(text).selects(MESSAGE)


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("a =", 4, "the end is not allowed here"),
        ("(a", 3, "the end is not allowed here; ')' is"),
        ("a)", 2, "')' is not allowed here"),
        ("a = 'open", 5, "the text that begins here has no end"),
        ("# = 3", 1, "'#' is not allowed here"),
        ("in = 3", 1, "'in' is not allowed here"),
        ("a = 1 AND Between = 3", 11, "'Between' is not allowed here"),
        ("a IN (1)", 7, "'1' is not allowed here"),
        ("a NOT = 3", 7, "'=' is not allowed here"),
        ("1", 1, "a selector has to be a truth value"),
        ("x AND 'a'", 7, "an operand of AND, OR and NOT has to be a truth value"),
        ("'a' < b", 1, "a text can't be compared by <; by = and <> it can"),
        ("TRUE >= b", 1, "a truth value can't be compared by >="),
        ("3 = 'x'", 1, "a number can't be compared with a text"),
        ("a + 'x' = 1", 5, "an operand of + has to be a number"),
        ("5 IN ('a')", 1, "5 is not allowed before IN; a property is"),
        ("a LIKE 'x' ESCAPE 'yy'", 19, "ESCAPE takes one character"),
        ("a LIKE 'x!' ESCAPE '!'", 8, "the pattern ends with its escape character"),
        ("a = 9223372036854775808", 5, "whole numbers have 64 bits"),
        ("a = 1e999", 5, "no finite number"),
        ("a = " + "1" * 5000, 5, "more than 40 digits"),
        ("NOT " * 201 + "a", 805, "more than 200"),
        ("a+" * 201 + "a=1", 1, "more than 200"),
        ("a" * 65_537, 65_537, "at most 65536"),
    ],
)
def test_a_text_that_is_no_selector_is_refused_with_its_place(text: str, column: int, said: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert said in str(caught.value)
    assert caught.value.column == column
    shown, caret = caught.value.place.splitlines()
    assert len(shown) <= 60
    assert caret == " " * (len(caret) - 1) + "^"


def test_parentheses_within_each_other_have_no_limit_but_the_length() -> None:
    assert selector("(" * 30_000 + "a" + ")" * 30_000).selects({"a": True})


@given(selectors("+-*/", "+-*"))
def test_a_tree_that_is_written_and_parsed_is_equal(tree: Node) -> None:
    assert parse(str(tree)) == tree


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_an_error(text: str) -> None:
    with suppress(SelectorError):
        parse(text)


@pytest.mark.parametrize("word", ["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"])
def test_a_word_of_selectors_is_no_name_but_a_name_may_begin_with_one(word: str) -> None:
    for name in (f"{word}$x", f"{word.lower()}$", f"{word}_1"):
        assert selector(f"{name} = 1 AND NOT {name} <> 1").selects({name: 1, "$x": 2})
    with pytest.raises(SelectorError):
        selector(f"{word} = 1")


@pytest.mark.parametrize("escape", ["", "!"])
def test_like_agrees_with_trying_every_way(escape: str) -> None:
    pieces = ["a", "b", "_", "%"] + ([f"{escape}%"] if escape else [])
    for pattern in product(pieces, repeat=3):
        test = selector(f"s LIKE '{''.join(pattern)}'" + (f" ESCAPE '{escape}'" if escape else ""))
        for length in range(5):
            for text in map("".join, product("ab%", repeat=length)):
                assert test.selects({"s": text}) == _fits(list(pattern), text), (pattern, text)


def _fits(pattern: list[str], text: str) -> bool:
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(_fits(rest, text[start:]) for start in range(len(text) + 1))
    return bool(text) and (first in ("_", text[0], f"!{text[0]}")) and _fits(rest, text[1:])


def test_a_pattern_with_many_wildcards_takes_no_exponential_time() -> None:
    assert not selector(f"s LIKE '{'%a' * 200}b'").selects({"s": "a" * 20_000})


def test_selectors_are_kept_for_others_with_their_text_but_few_long_ones() -> None:
    short, *long = "a = 1", *[f"a{number} = '{'x' * SHORT}'" for number in range(MOST_LONG + 1)]
    known = selector(short), selector(long[0])
    assert (selector(short), selector(long[0])) == known
    for text in long[1:]:
        selector(text)
    assert selector(short) is known[0]
    assert selector(long[0]) is not known[1]

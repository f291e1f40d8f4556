"""Selectors of a broker's clients: texts that spell numbers, and a broker without the parser."""

import sys

import pytest

from protocols.broker.headers import number_of
from protocols.broker.messages import Send
from protocols.broker.selection import Selection
from protocols.broker.wire import StompCodec
from protocols.errors import UnsupportedError


def selects(selector: str, price: str) -> bool:
    message = StompCodec().decode(f"SEND\ndestination:/topic/a\nprice:{price}\n\nx\0".encode())
    assert isinstance(message, Send)
    return Selection(selector).selects(message.content)


@pytest.mark.parametrize(
    ("selector", "price", "selected"),
    [
        ("price > 1.5", "2", True),
        ("price = 9007199254740993", "9007199254740993", True),
        ("price > 1.5", "1" + "0" * 400, True),
        ("price + 0.5 > 1", "1" + "0" * 400, True),
        ("price BETWEEN 0.5 AND 2", "1" * 5000, False),
        ("price > 1", "two", False),
        ("price > 1", " 2", True),
        ("price > 1", "Infinity", True),
        ("price > 1", "inf", False),
        ("price > 1", "1_000", False),
        ("price > 1", "\u0662", False),
    ],
)
def test_a_text_is_taken_for_the_number_it_spells_however_long(selector: str, price: str, selected: bool) -> None:
    assert selects(selector, price) is selected


def test_a_selector_without_the_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("protocols.selector", "protocols.broker.conversion"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lark", None)
    with pytest.raises(UnsupportedError, match="messaging"):
        Selection("price > 1.5")


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("12", 12), ("", -1), ("-1", -1), ("²", -1), ("1" * 5000, -1)])
def test_numbers_of_headers_are_digits_of_at_most_64_bits(text: str, number: int) -> None:
    assert number_of(text) == number

"""JMS messages as applications see them: header fields, properties and their conversions."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from protocols.errors import UsageError
from protocols.jms import ConversionError, Properties, Typed, fields_of, jms_message, message_of, property_of
from protocols.jms.conversions import converted
from protocols.jms.values import Scalar
from protocols.messaging import Publication

VALUES: dict[str, Scalar] = {
    "boolean": True,
    "byte": 1,
    "short": 1,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "string": "1",
}
READ_AS = {
    "boolean": "boolean string",
    "byte": "byte short int long string",
    "short": "short int long string",
    "int": "int long string",
    "long": "long string",
    "float": "float double string",
    "double": "double string",
    "string": "boolean byte short int long float double string",
}
"""The table of JMS 1.1 3.5.4."""


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("wanted", VALUES)
def test_a_property_is_read_as_the_types_of_the_table(kind: str, wanted: str) -> None:
    properties = Properties({"a": Typed(kind, VALUES[kind])})
    read = getattr(properties, f"get_{wanted}")
    if wanted in READ_AS[kind].split():
        read("a")
    else:
        with pytest.raises(ConversionError, match=f"a: a {kind} can't be read as {wanted}"):
            read("a")


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("boolean", True, "true"),
        ("long", -5, "-5"),
        ("double", 0.0, "0.0"),
        ("double", -0.0, "-0.0"),
        ("double", 100.0, "100.0"),
        ("double", 0.001, "0.001"),
        ("double", 0.00123, "0.00123"),
        ("double", 0.0009, "9.0E-4"),
        ("double", 1234567.5, "1234567.5"),
        ("double", 1e7, "1.0E7"),
        ("double", 1.25e100, "1.25E100"),
        ("double", 12.5, "12.5"),
        ("double", -inf, "-Infinity"),
        ("double", nan, "NaN"),
        ("double", 0.1, "0.1"),
        ("float", Properties({"a": Typed("float", 0.1)}).checked()["a"], "0.1"),
        ("float", 3.4028234663852886e38, "3.4028235E38"),
    ],
)
def test_numbers_have_the_texts_of_java(kind: str, value: float, text: str) -> None:
    assert converted(kind, value, "string") == text


@pytest.mark.parametrize(
    ("text", "wanted", "value"),
    [
        ("TRUE", "boolean", True),
        ("yes", "boolean", False),
        ("+12", "byte", 12),
        ("-32768", "short", -32768),
        ("1.5e3", "double", 1500.0),
        (" .5f ", "double", 0.5),
        ("-Infinity", "float", -inf),
        ("0.1", "float", 0.10000000149011612),
    ],
)
def test_texts_are_read_as_java_reads_them(text: str, wanted: str, value: object) -> None:
    assert converted("string", text, wanted) == value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("128", "byte"), ("1.0", "int"), ("", "long"), (" 1", "int"), ("x", "double"), ("9" * 5000, "long"), ("1e", "float")],
)
def test_texts_that_are_no_number_are_refused(text: str, wanted: str) -> None:
    with pytest.raises(ConversionError):
        converted("string", text, wanted)


def test_a_property_that_is_not_there_is_null() -> None:
    properties = Properties()
    assert properties.get_string("a") is None
    assert properties.get_boolean("a") is False
    with pytest.raises(ConversionError, match="a null can't be read as int"):
        properties.get_int("a")


def test_a_selector_sees_header_fields_and_properties() -> None:
    message = jms_message(0x10, 3, "topic:t", "x", properties={"a": 1}, sent_at=1.5, instance=2, correlation_id="c")
    assert dict(fields_of(message)) == {
        "a": 1,
        "JMSDeliveryMode": "NON_PERSISTENT",
        "JMSPriority": 4,
        "JMSMessageID": "ID:00000010.2.3",
        "JMSTimestamp": 1500,
        "JMSCorrelationID": "c",
    }
    assert len(fields_of(message)) == 6
    assert fields_of(message).get("JMSType") is None


def test_any_publication_can_be_a_message() -> None:
    plain = Publication(1, 2, "topic:t", 500, None, {"a": 1.5}, 9, 1.23456, 2.0)
    message = message_of(plain, 7)
    assert (message.size, message.body, message.content, message.priority, message.instance) == (500, None, None, 9, 7)
    assert message.sent_at == 1.235
    assert message_of(message, 7) is message
    assert message_of(jms_message(1, 2, "topic:t", {"a": 1}, correlation_id="c"), 3).content == {"a": 1}
    with pytest.raises(UsageError):
        message_of(Publication(1, 2, "queue:q", 0), 7)


def test_what_is_put_in_comes_out() -> None:
    assert jms_message(1, 2, "topic:t", b"x").content == b"x"
    assert jms_message(1, 2, "topic:t", "ä").content == "ä"
    assert jms_message(1, 2, "topic:t", {"a": 1, "b": b"x", "c": None}).content == {"a": 1, "b": b"x", "c": None}
    assert jms_message(1, 2, "topic:t", [1, "x"], body_type="stream").content == [1, "x"]
    assert jms_message(1, 2, "topic:t", [1, {"a": None}]).content == [1, {"a": None}]
    assert jms_message(1, 2, "topic:t", [1]).body_type == "object"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("-7", "long", -7),
        ("12.5", "double", 12.5),
        ("1e3", "double", 1000.0),
        ("9" * 30, "double", 1e30),
        ("true", "boolean", True),
        ("", "string", ""),
        ("True", "string", "True"),
        ("12D", "string", "12D"),
        (" 7", "string", " 7"),
        ("NaN", "string", "NaN"),
        ("1_000", "string", "1_000"),
    ],
)
def test_the_type_of_a_property_follows_from_its_text(text: str, kind: str, value: Scalar) -> None:
    assert property_of(f"a={text}") == ("a", Typed(kind, value))


def test_a_property_may_name_its_type() -> None:
    assert property_of("a:string=7") == ("a", Typed("string", "7"))
    assert property_of("a:double=12D") == ("a", Typed("double", 12.0))


@pytest.mark.parametrize("value", [object(), [1], np.int64(3), np.zeros((2, 2))])
def test_a_property_of_another_type_is_named_in_one_line(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^price: .* is not allowed; a value is true or false, a number,") as caught:
        Properties({"symbol": "ABB", "price": value})
    assert "\n" not in str(caught.value)


def test_a_property_that_is_set_again_has_the_type_of_the_last_value() -> None:
    properties = Properties()
    for kind, value in (("int", 1), ("string", "x"), ("float", 0.5), ("double", 0.1), ("long", 1 << 40)):
        properties.put("a", kind, value)
        assert properties.typed_items() == [("a", kind, value)]
        assert properties.checked().type_of("a") == kind

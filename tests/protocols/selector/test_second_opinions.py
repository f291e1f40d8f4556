"""Selectors mean what SQLite and ActiveMQ take them for."""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from protocols.selector import Fields, Selector
from protocols.selector.tree import Node
from tests.protocols.selector.generated import FLAGS, FRACTIONS, NUMBERS, TEXTS, messages, selectors, whole_messages
from tests.support.needs import ACTIVEMQ

NAMES = NUMBERS + FRACTIONS + TEXTS + FLAGS


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    connection.execute(f"CREATE TABLE messages ({', '.join(NAMES)})")
    yield connection
    connection.close()


@given(tree=selectors("+-*/", "+-*"), message=messages)
@settings(max_examples=500)
def test_the_value_is_that_of_sqlite(database: sqlite3.Connection, tree: Node, message: Fields) -> None:
    database.execute("DELETE FROM messages")
    database.execute(f"INSERT INTO messages VALUES ({','.join('?' * len(NAMES))})", [message.get(name) for name in NAMES])
    selected = database.execute(f"SELECT 1 FROM messages WHERE {tree}").fetchone() is not None
    assert Selector(str(tree)).selects(message) == selected


class ActiveMq:
    """Java's `SelectorParser`, called through py4j."""

    def __init__(self, gateway: Any) -> None:
        packages = gateway.jvm.org.apache.activemq
        self._parse = packages.selector.SelectorParser.parse
        self._make_message = packages.command.ActiveMQMessage
        self._context = packages.filter.MessageEvaluationContext()

    def selects(self, text: str, fields: Mapping[str, Any]) -> bool:
        """Return whether ActiveMQ delivers a message to a subscriber with this selector."""
        message = self._make_message()
        for name, value in fields.items():
            message.setObjectProperty(name, value)
        self._context.setMessageReference(message)
        return bool(self._parse(text).matches(self._context))


@pytest.fixture(scope="module")
def activemq() -> Iterator[ActiveMq]:
    from py4j.java_gateway import JavaGateway

    gateway = JavaGateway.launch_gateway(classpath=f"{ACTIVEMQ}/*", die_on_exit=True)
    yield ActiveMq(gateway)
    gateway.shutdown()


# Without what `DIFFERENCES` lists: divisions of whole numbers, zeros with a sign, and missing properties.
@pytest.mark.peer("activemq")
@given(tree=selectors("+-*", "+-"), message=whole_messages)
@settings(max_examples=2000, deadline=None)
def test_the_value_is_that_of_activemq(activemq: ActiveMq, tree: Node, message: Fields) -> None:
    assert Selector(str(tree)).selects(message) == activemq.selects(str(tree), message)


DIFFERENCES = {
    "i / 2 = 2": "JMS counts as Java does, and 5 / 2 is 2 there",
    "s <> 1": "values that are not alike make a comparison false",
    "0 <> missing": "a comparison with null is unknown",
    "x = -x": "numbers compare as Java does, and 0.0 == -0.0 there",
    "missing = missing": "a comparison with null is unknown",
}
"""Selectors that are true for one of us only, and the rule of JMS by which we go."""


@pytest.mark.peer("activemq")
@pytest.mark.parametrize("text", DIFFERENCES)
def test_where_activemq_differs_from_jms(activemq: ActiveMq, text: str) -> None:
    message: Fields = {"i": 5, "s": "a", "x": 0.0}
    assert Selector(text).selects(message) != activemq.selects(text, message)

"""Programs of others: `stomp.py` as a client of our broker, and ActiveMQ, which delivers what our broker delivers."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.protocols.broker.served import Client, activemq, ours, until

SELECTORS = [
    *(f"symbol = '{name}'" for name in ("A", "B", "zz", "O''Neill")),
    *(f"symbol <> '{name}'" for name in ("A", "zz")),
    *(f"price {test} 10" for test in ("<", "<=", "=", ">=", ">", "<>")),
    *(f"rate {test} 1.0" for test in ("<", "<=", "=", ">=", ">")),
    *("price BETWEEN 9 AND 12", "price NOT BETWEEN 9 AND 12", "rate BETWEEN 1.25 AND 1.0", "rate BETWEEN 0.9 AND 1.5"),
    *("symbol IN ('A', 'C')", "symbol NOT IN ('A', 'C')", "symbol IN ('zz')"),
    *("symbol LIKE 'A%'", "symbol LIKE '_'", "symbol NOT LIKE '%B%'", "note LIKE '50!%%' ESCAPE '!'", "note LIKE '%'"),
    *("note IS NULL", "note IS NOT NULL", "missing IS NULL", "missing = 'x'", "NOT (missing = 'x')"),
    *("price > 9 AND symbol = 'A'", "price > 11 OR symbol = 'B'", "NOT (price > 10)", "NOT (symbol = 'A' OR symbol = 'B')"),
    *("price > 10 AND (symbol = 'A' OR note IS NOT NULL)", "note IS NULL AND price >= 10 OR symbol = 'C' AND price < 10"),
    *("JMSPriority > 4", "JMSPriority = 4", "JMSPriority BETWEEN 2 AND 6", "JMSDeliveryMode = 'NON_PERSISTENT'"),
    *("JMSType = 'quote'", "JMSType IS NULL", "JMSCorrelationID = '#1'", "JMSCorrelationID LIKE '#%' AND price > 9"),
    *("TRUE", "FALSE", "1 = 1", "price > 9 AND price < 12 AND NOT (symbol = 'C')"),
]
"""Conditions on texts, on texts that are numbers, and on fields of the header."""
DIFFERENCES = {
    "rate <> 1.0": "values that are not alike make a comparison false",
    "rate > 0": "a text that is a fraction is no number for ActiveMQ where the other one is whole",
    "note IS NULL OR NOT note = 'none'": "ActiveMQ takes NOT for a part of the operand behind it",
}
"""Selectors that select other messages here than at ActiveMQ, and why."""


def headers(number: int) -> dict[str, str]:
    """Return the properties and header fields of one of the messages."""
    found = {"symbol": ("A", "B", "C", "AB", "O'Neill")[number % 5], "price": str(8 + number % 6)}
    found |= {"rate": ("0.5", "1", "1.0", "1.25", "fast")[number % 7 % 5]}
    found |= {"priority": str(number % 10)} if number % 3 else {}
    found |= {"note": ("50% off", "none", "")[number % 9 // 3]} if number % 4 == 1 else {}
    found |= {"type": "quote"} if number % 7 == 2 else {}
    return found | ({"correlation-id": f"#{number % 3}"} if number % 2 else {})


def delivered(broker: Callable[[Path], AbstractContextManager[int]], folder: Path) -> dict[str, list[str]]:
    """Return which of 60 messages come to a subscription with each of the selectors, those of `DIFFERENCES` included."""
    selectors = [*SELECTORS, *DIFFERENCES]
    with broker(folder) as port:
        subscriber, publisher = Client(port), Client(port)
        for number, text in enumerate(selectors):
            subscriber.connection.subscribe("/topic/t", id=str(number), selector=text, receipt=f"s{number}")
            subscriber.confirmed(f"s{number}")
        subscriber.connection.subscribe("/topic/end", id="end", receipt="end")
        subscriber.confirmed("end")
        for number in range(60):
            publisher.connection.send("/topic/t", str(number), receipt=f"m{number}", **headers(number))
        publisher.confirmed("m59")
        publisher.connection.send("/topic/end", "", receipt="last")
        publisher.confirmed("last")
        until(lambda: any(headers["subscription"] == "end" for headers, _ in subscriber.messages), "the last message")
        assert not subscriber.errors
        subscriber.connection.disconnect()
        publisher.connection.disconnect()
    found = defaultdict[str, list[str]](list)
    for head, body in subscriber.messages:
        if head["subscription"] != "end":
            found[selectors[int(head["subscription"])]].append(body)
    return dict(found)


@pytest.mark.peer("stomp.py")
@pytest.mark.peer("activemq")
def test_activemq_delivers_what_our_broker_delivers(tmp_path: Path) -> None:
    assert len(SELECTORS) >= 50
    mine, theirs = delivered(ours, tmp_path), delivered(activemq, tmp_path)
    assert {text: mine.get(text, []) for text in SELECTORS} == {text: theirs.get(text, []) for text in SELECTORS}
    assert len(set(map(tuple, mine.values()))) > 30
    for text in DIFFERENCES:
        assert mine.get(text) != theirs.get(text)


@pytest.mark.peer("stomp.py")
def test_a_client_of_others_publishes_subscribes_and_gets_errors(tmp_path: Path) -> None:
    with ours(tmp_path) as port:
        subscriber, publisher = Client(port), Client(port)
        subscriber.connection.subscribe("/topic/t", id="1", receipt="s")
        subscriber.confirmed("s")
        text = "lines\nand \0 zeros: \N{GREEK SMALL LETTER LAMDA}\\"
        publisher.connection.send("/topic/t", text, receipt="m", note=text.replace("\0", ""))
        publisher.confirmed("m")
        subscriber.connection.unsubscribe("1", receipt="u")
        subscriber.confirmed("u")
        publisher.connection.send("/topic/t", "unheard", receipt="m2")
        publisher.confirmed("m2")
        ((head, body),) = subscriber.messages
        assert (body, head["note"], head["destination"]) == (text, text.replace("\0", ""), "/topic/t")
        subscriber.connection.disconnect(receipt="bye")
        subscriber.confirmed("bye")
        publisher.connection.send("/queue/t", "x")
        until(lambda: bool(publisher.errors), "an error")
        assert "'/queue/t' is not allowed; /topic/NAME" in publisher.errors[0]


@pytest.mark.peer("stomp.py")
def test_a_publisher_of_others_gets_its_receipt_when_a_subscriber_of_others_has_acknowledged(tmp_path: Path) -> None:
    with ours(tmp_path) as port:
        subscriber, publisher = Client(port), Client(port)
        subscriber.connection.subscribe("/topic/t", id="1", ack="client-individual", receipt="s")
        subscriber.confirmed("s")
        publisher.connection.send("/topic/t", "x", receipt="m")
        until(lambda: bool(subscriber.messages), "a message")
        assert publisher.receipts == []
        subscriber.connection.ack(subscriber.messages[0][0]["ack"])
        publisher.confirmed("m")

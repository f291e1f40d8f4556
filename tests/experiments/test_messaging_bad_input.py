"""Mistakes in scenarios of FJM2 and tunnels, as a user types them: one line with file, key, value and what is allowed."""

import pytest

from experiments.cli import invoke

LONG = "topic:" + "x" * 256
BAD = [
    ("workload.0.priority=10", "workload.0.priority: value 10 is not allowed", "less than or equal to 9"),
    ("workload.0.priority=-1", "workload.0.priority: value -1 is not allowed", "greater than or equal to 0"),
    ("workload.0.priority={10: 1}", "workload.0.priority.10: value 10 is not allowed", "less than or equal to 9"),
    ("workload.0.properties={a: [[1]]}", "workload.0.properties.a.0: value [1] is not allowed", "a valid boolean"),
    ("workload.0.properties={'a b': [1]}", "workload.0: property 'a b' is not allowed", "letters, digits, _ and $"),
    ("workload.0.to='topic:'", "workload.0.to: 'topic:' is not allowed", "a name of 1 to 255 bytes of UTF-8"),
    (f"workload.0.to='{LONG}'", "workload.0.to: 'topic:xxx", "a name of 1 to 255 bytes of UTF-8"),
    (f"workload.1.to='topic:{'é' * 128}'", "workload.1.to: 'topic:ééé", "a name of 1 to 255 bytes of UTF-8"),
    ("workload.0.to='queue:q'", "workload.0.to: 'queue:q' is not allowed", "there are topics only"),
    ('workload.2.selector="price >> 1"', "workload.2.selector: '>' is not allowed here; value or '(' is", "(column 8)"),
    ("workload.2.selector=\"'a' > 1\"", "workload.2.selector: a text can't be compared", "column"),
    (f"workload.2.selector='{'(' * 5000}'", "the end is not allowed here", "value or '(' or NOT is (column 5001)"),
    ("nodes.g1={role: tunnel}", "nodes.g1.lan: value '' is not allowed", "one of l1, w"),
    ("nodes.g1.ring=0", "nodes.g1.ring: value 0 is not allowed", "a whole number from 1 to 1000000"),
    ("nodes.g1.ring=1.5", "nodes.g1.ring: value 1.5 is not allowed", "a whole number from 1 to 1000000"),
    ("nodes.g1.peers=[g1]", "nodes.g1.peers: value ['g1'] is not allowed", "known here: role, lan, ring"),
    ("protocol.pool=0", "protocol.pool: value 0 is not allowed", "a whole number from 1"),
    ("protocol.pool=1kB", "workload.0: pool: 1000 bytes are too few for a message of 4051", "at least 4096"),
    ("workload.0.size={from: 1, to: 17000000}", "workload.0: pool: 16000000 bytes are too few", "at least 18874368"),
    ("protocol.queue=0", "protocol.queue: value 0 is not allowed", "a whole number from 1"),
    ("protocol.order=lifo", "protocol.order: value 'lifo' is not allowed", "one of none, fifo"),
]


@pytest.mark.parametrize(("change", "problem", "allowed"), BAD)
def test_a_mistake_is_one_line_with_what_is_allowed(
    change: str, problem: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", "fjm2-wan-single", "--set", change]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("mcastlab: fjm2-wan-single: ")
    assert problem in told
    assert allowed in told


def test_a_message_that_stomp_can_not_carry_is_refused_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "broker-fanout", "--set", "workload.0.properties={destination: [a]}"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("mcastlab: broker-fanout: workload.0: property 'destination' is not allowed; STOMP has a header")

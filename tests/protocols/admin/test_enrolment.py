"""When a client of a registry tries again after a failure, and how long it waits for an answer."""

import json
from itertools import pairwise

from protocols.admin.enrolment import CONNECT_PATIENCE, FIRST_PATIENCE, LAST_PATIENCE, LAST_RETRY, Enrolment
from protocols.admin.messages import Response
from protocols.admin.registration import Registration

REGISTRATION = Registration("t1", 1, 7001, "all", "10.0.0.1")
NODE = {"id": 1, "name": "t1", "site": 1, "address": "10.0.0.1", "port": 7001, "group": "all", "paused": False}
REGISTERED = Response(201, json.dumps({"id": 1, "lease": 10.0, "registry": 7, "stamp": 1, "nodes": [NODE]}).encode())


def attempts(enrolment: Enrolment, until: float, lasting: float) -> list[float]:
    """Return the times of the attempts, each of which fails after `lasting` seconds."""
    now, found = 0.0, []
    while now < until:
        assert enrolment.next_request(now) is not None
        found.append(now)
        now += lasting
        enrolment.failed(now, lasting)
        now = max(now, enrolment.due)
    return found


def test_a_registry_that_refuses_at_once_is_asked_in_doubled_pauses_up_to_the_longest() -> None:
    times = attempts(Enrolment(REGISTRATION, lambda nodes: None), 60.0, 0.0)
    pauses = [round(later - earlier, 3) for earlier, later in pairwise(times)]
    assert pauses[:6] == [0.1, 0.2, 0.4, 0.8, 1.6, LAST_RETRY]
    assert set(pauses[6:]) == {LAST_RETRY}


def test_a_connection_that_does_not_open_is_followed_by_another_without_a_pause() -> None:
    times = attempts(Enrolment(REGISTRATION, lambda nodes: None), 60.0, CONNECT_PATIENCE)
    assert times == [CONNECT_PATIENCE * number for number in range(30)]


def test_a_registry_that_does_not_answer_gets_more_time_until_it_does() -> None:
    enrolment = Enrolment(REGISTRATION, lambda nodes: None)
    assert enrolment.patience == FIRST_PATIENCE
    attempts(enrolment, 10.0, enrolment.patience)
    assert enrolment.patience == LAST_PATIENCE
    request = enrolment.next_request(30.0)
    assert request is not None
    enrolment.answered(request, REGISTERED, 30.0)
    assert enrolment.id == 1
    assert enrolment.patience == FIRST_PATIENCE

"""Connections between fake hosts: opened, used and closed as protocols/connection.py says."""

from typing import Any

import pytest

from experiments.contract.bench import Bench
from experiments.contract.conversation import Answerer, Caller, Line, LineCodec
from protocols.composite import CompositeMachine
from protocols.errors import UsageError
from sim.addresses import HostPort
from tests.contract.broken_callers import BROKEN_CALLERS


def talk(lines: int = 10, answerer: type[Answerer] = Answerer, **options: Any) -> tuple[Bench, Caller, Answerer]:
    """Return a bench on which "a" called "b"; nothing has happened yet but the call."""
    bench = Bench(("a", "b"), **options)
    there = answerer(bench["b"])
    here = Caller(bench["a"], "b", lines)
    bench["b"].run(there)
    bench["a"].run(here)
    return bench, here, there


def test_lines_arrive_in_order_each_once_and_both_ends_are_closed() -> None:
    bench, caller, answerer = talk(codec=LineCodec())
    bench.run()
    assert list(caller.heard.values()) == list(answerer.heard.values()) == [list(range(10))]
    assert list(caller.reasons.values()) == list(answerer.reasons.values()) == ["ended"]
    # Request, answer with the first line, lines back, and the end there and back: a delay of 10 ms each.
    assert bench.now == pytest.approx(0.06)


@pytest.mark.parametrize("room", [1, 2, 3, 7])
def test_a_full_connection_drains(room: int) -> None:
    bench, caller, answerer = talk(room=room)
    bench.run()
    assert list(caller.heard.values()) == list(answerer.heard.values()) == [list(range(10))]
    assert caller.reason == "ended"


def test_a_slow_connection_does_not_hold_up_another() -> None:
    bench = Bench(("a", "b", "c"), room=2)
    answerer = Answerer(bench["b"])
    bench["b"].run(answerer)
    callers = [Caller(bench[name], "b", 6) for name in ("a", "c")]
    for name, caller in zip(("a", "c"), callers, strict=True):
        bench[name].run(caller)
    bench.run(0.015)
    slow = next(connection for connection in answerer.heard if connection.peer == "a")
    bench["b"].hold(slow)
    bench.run(2.0)
    assert (callers[0].reason, callers[1].reason) == (None, "ended")
    assert bench["a"].rules.states[callers[0].connection] == "full"  # type: ignore[index]
    bench["b"].release(slow)
    bench.run()
    assert callers[0].reason == "ended"


@pytest.mark.parametrize("peer", ["b", "nobody", HostPort("a", 1)])
def test_a_call_that_nobody_takes_is_refused(peer: Any) -> None:
    bench = Bench(("a", "b"))
    caller = Caller(bench["a"], peer, 1)
    bench["a"].run(caller)
    bench.run()
    assert (caller.reason, caller.heard) == ("refused", {})


def test_a_crash_resets_the_connections_of_the_host() -> None:
    bench, caller, answerer = talk(1000, room=4)
    bench.run(0.1)
    bench.crash("b")
    bench.run(over=lambda: caller.reason is not None)
    assert caller.reason == "reset"
    assert bench.now == pytest.approx(0.11)
    assert answerer.reasons == {}


def test_a_host_without_power_is_noticed_by_time_out() -> None:
    bench, caller, _ = talk(1000, room=4, timeout=2.0)
    bench.run(0.1)
    bench.crash("b", power=True)
    bench.run()
    assert caller.reason == "timeout"
    assert 2.0 < bench.now < 2.2


def test_an_interruption_shorter_than_the_time_out_only_delays() -> None:
    bench, caller, answerer = talk(30, room=4, timeout=2.0)
    bench.run(0.1)
    bench.silent.add("b")
    bench.run(1.5)
    bench.silent.clear()
    bench.run()
    assert list(caller.heard.values()) == list(answerer.heard.values()) == [list(range(30))]
    assert caller.reason == "ended"


def test_a_call_into_silence_times_out() -> None:
    bench, caller, answerer = talk()
    bench.silent.add("b")
    bench.run()
    assert (caller.reason, answerer.heard) == ("timeout", {})


def test_giving_up_before_the_connection_is_established() -> None:
    bench, caller, answerer = talk()
    bench["a"].call(lambda now: caller.ports.hang_up(caller.connection))  # type: ignore[arg-type]
    bench.run()
    assert caller.heard == {}
    assert (caller.reason, list(answerer.reasons.values())) == ("ended", ["ended"])


def test_both_ends_may_hang_up_at_once() -> None:
    bench, caller, answerer = talk(1000, room=4)
    bench.run(0.1)
    (there,) = answerer.heard
    bench["a"].call(lambda now: caller.ports.hang_up(caller.connection))  # type: ignore[arg-type]
    bench["b"].call(lambda now: answerer.ports.hang_up(there))
    bench.run()
    assert (caller.reason, list(answerer.reasons.values())) == ("ended", ["ended"])


def test_machines_of_one_host_connect_with_each_other() -> None:
    bench = Bench(("a",))
    composite = CompositeMachine(bench["a"])
    first, second = (composite.component(name) for name in ("", "other"))
    answerer, caller = Answerer(first), Caller(second, "a", 5)
    first.run(answerer, lambda event: None)
    second.run(caller, lambda event: None)
    bench.run()
    assert list(caller.heard.values()) == list(answerer.heard.values()) == [list(range(5))]
    assert [connection.peer for connection in answerer.heard] == [HostPort("a", 1)]


def test_a_machine_connects_with_itself() -> None:
    bench = Bench(("a",))
    answerer = Answerer(bench["a"])
    bench["a"].run(answerer)
    bench["a"].call(lambda now: answerer.ports.connect("a"))
    bench.run(0.1)
    assert len(answerer.heard) == 2
    first, second = answerer.heard
    bench["a"].call(lambda now: answerer.say(first, Line(7, 100)))
    bench.run(0.115)
    assert answerer.heard[second] == [7]


def test_a_component_that_stops_resets_its_connections_alone() -> None:
    bench = Bench(("a", "b"))
    composite = CompositeMachine(bench["b"])
    components = [composite.component(name) for name in ("", "other")]
    for component in components:
        component.run(Answerer(component), lambda event: None)
    calls = CompositeMachine(bench["a"])
    callers = []
    for port in (0, 1):
        host = calls.component(str(port))
        callers.append(Caller(host, host.address_of("b", port), 1000))
        host.run(callers[-1], lambda event: None)
    bench.run(0.015)
    components[1].stop()
    bench.run()
    assert [caller.reason for caller in callers] == ["ended", "reset"]


def test_a_port_is_listened_at_once() -> None:
    bench = Bench(("a",))
    bench["a"].run(Answerer(bench["a"]))
    with pytest.raises(UsageError, match="listens at port 0 already"):
        bench["a"].call(lambda now: bench["a"].listen())


@pytest.mark.parametrize(("mutant", "words"), BROKEN_CALLERS)
def test_a_machine_that_breaks_a_rule_is_caught(mutant: type[Caller], words: str) -> None:
    bench = Bench(("a", "b"), room=4)
    bench["b"].run(Answerer(bench["b"]))
    with pytest.raises(AssertionError, match=words):
        _run(bench, mutant(bench["a"], "b", 10))


def _run(bench: Bench, caller: Caller) -> None:
    bench["a"].run(caller)
    bench.run()

"""A slow application over real connections: nothing is lost, in order, and the other ends wait."""

from typing import Any

from emu.host import UdpHost
from experiments.contract.connection_checks import Talk
from experiments.contract.conversation import Answerer, Caller
from experiments.contract.worlds import UdpWorld
from protocols.connection import Connection
from protocols.machine import Address, Message


def slow(talk: Talk, service_time: float, capacity: int) -> None:
    """Let the application of the first host be slow."""
    host: Any = talk.world.hosts[0]
    assert isinstance(host, UdpHost)
    host.read_at(service_time, capacity)


def test_messages_of_connections_wait_and_are_never_lost() -> None:
    with Talk(UdpWorld, 3) as talk:
        answerer: Answerer = talk.on(0, Answerer)
        slow(talk, 0.0005, 5)
        began = talk.world.now
        callers: list[Caller] = [talk.on(n, lambda ports: Caller(ports, talk.address(0), 100)) for n in (1, 2)]
        talk.until(lambda: len(answerer.reasons) == 2 and all(each.reason for each in callers), "not closed")
        assert talk.world.now - began > 200 * 0.0005
        for each in (*callers, answerer):
            assert all(lines == list(range(100)) for lines in each.heard.values())
            assert set(each.reasons.values()) == {"ended"}


def test_a_slow_application_makes_a_connection_full_until_it_reads_again() -> None:
    with Talk(UdpWorld, 2) as talk:
        answerer: Answerer = talk.on(0, lambda ports: Answerer(ports, mute=True))
        slow(talk, 0.3, 2)
        caller: Caller = talk.on(1, lambda ports: Caller(ports, talk.address(0), 400, 50_000, stays=False))
        talk.until(lambda: bool(caller.full), "never full")
        talk.pause(0.05)
        assert answerer.counts() == {"lines_heard": 0}
        slow(talk, 0.0, 0)
        talk.until(lambda: caller.reason is not None and bool(answerer.reasons), "not closed")
        assert list(answerer.heard.values()) == [list(range(400))]


class LeavesAtThird(Answerer):
    """Hang up at the third line."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Count."""
        super().receive(message, source, to, now)
        assert isinstance(to, Connection)
        if len(self.heard[to]) == 3:
            self.ports.hang_up(to)


def test_nothing_is_delivered_after_the_machine_hung_up() -> None:
    with Talk(UdpWorld, 2) as talk:
        answerer: Answerer = talk.on(0, LeavesAtThird)
        slow(talk, 0.001, 100)
        caller: Caller = talk.on(1, lambda ports: Caller(ports, talk.address(0), 50))
        talk.until(lambda: caller.reason is not None and bool(answerer.reasons), "not closed")
        assert list(answerer.heard.values()) == [[0, 1, 2]]

"""Connections as machines see them: opened and closed once, whole messages in order, full and drained, each with its reason."""

import pytest

from protocols.connection import Connection
from protocols.errors import ContractError, UsageError
from protocols.machine import Address, Message, Packet
from protocols.tcp.options import SILENCE
from sim.faults import Faults
from sim.tcp.end import TcpEnd
from tests.sim.tcp.scenes import ENGINES, Scene, star
from tests.support.talkers import Numbered, Talker

LINES = [100, 2000, 8, 70_000, 1448, 300] * 5


@pytest.mark.parametrize("engine", ENGINES)
def test_messages_arrive_whole_and_in_order_and_then_the_end(engine: str) -> None:
    scene = Scene(star(rate="10Mbit", delay="10ms", loss="2%"), engine)
    listener = scene.listener("r1", [500] * 20)
    caller = scene.caller("sender", "r1", LINES, hangs_up=True)
    scene.network.run(until=60)
    (connection,) = listener.connections
    assert listener.heard[connection] == list(range(len(LINES)))
    assert listener.reasons == caller.reasons == ["ended"]
    # After `hang_up` the rest of what the other end sends is not delivered.
    assert caller.heard[caller.connections[0]] == list(range(len(caller.heard[caller.connections[0]])))


def test_strict_fast_and_bytes_have_equal_fingerprints() -> None:
    def fingerprint(engine: str) -> tuple[str, int]:
        link = {"rate": "5Mbit", "delay": "8ms", "queue": 12, "loss": "3%"}
        scene = Scene(star(3, **link), engine, seed=3)
        scene.listener("sender", LINES)
        for number in (1, 2, 3):
            scene.caller(f"r{number}", "sender", LINES[number:], hangs_up=number == 2)
        faults = Faults(scene.network)
        scene.during(0.3, 0.9, lambda: faults.cut("r1", scene.network.topology.switches[0]))
        scene.during(0.2, 0.7, lambda: faults.hold(["r3", "rest"]))
        scene.network.run(until=20)
        return scene.network.fingerprint(), scene.tcp.retransmissions

    (first, repeated), *others = [fingerprint(engine) for engine in ENGINES]
    assert repeated > 20
    assert [other for other, _ in others] == [first, first]


def test_idle_connections_have_one_event_in_the_queue_for_all_keep_alive_timers_whatever_was_sent() -> None:
    scene = Scene()
    scene.listener("r1")
    caller = scene.caller("sender", "r1", [1000])
    for second in range(1, 6):
        scene.at(second, lambda: scene.network.host("sender").call(caller.say, 1000))
    scene.network.run(until=10)
    assert len(scene.network.env._queue) == 1


@pytest.mark.parametrize("control", ["reno", "cubic", "reno-linux", "cubic-linux"])
def test_a_connection_changes_no_window_but_its_own(control: str) -> None:
    scene = Scene(star(2, rate="10Mbit", delay="10ms"), control=control)
    scene.listener("sender")
    busy, idle = (scene.caller(name, "sender", lines) for name, lines in (("r1", [200_000]), ("r2", [100])))
    scene.network.run(until=5)
    (mine,), (other,) = busy.connections, idle.connections
    assert mine.window > other.window == 10.0  # type: ignore[attr-defined]
    assert other._control is scene.tcp.first_control  # type: ignore[attr-defined]


def test_a_connection_to_a_host_where_nobody_listens_is_refused() -> None:
    scene = Scene()
    caller = scene.caller("sender", "r1")
    scene.network.run(until=5)
    assert caller.reasons == ["refused"]
    assert not caller.openings


def test_a_connection_to_a_host_that_does_not_exist_is_a_wrong_use() -> None:
    with pytest.raises(UsageError, match="r9"):
        Scene().caller("sender", "r9")


def test_a_second_listener_at_a_port_is_a_wrong_use() -> None:
    scene = Scene()
    scene.listener("r1")
    with pytest.raises(UsageError, match="listens at port 0 already"):
        scene.network.host("r1").listen()


def test_a_peer_that_never_answers_is_a_timeout_after_half_a_minute() -> None:
    scene = Scene(star(loss="100%"))
    scene.listener("r1")
    caller = scene.caller("sender", "r1")
    scene.network.run(until=100)
    assert caller.reasons == ["timeout"]
    assert caller.closings[caller.connections[0]][1] == pytest.approx(31.0)


@pytest.mark.parametrize("lines", [[], [1000] * 2000], ids=["idle", "busy"])
def test_a_peer_that_falls_silent_is_a_timeout_within_a_minute(lines: list[int]) -> None:
    scene = Scene()
    listener = scene.listener("r1")
    caller = scene.caller("sender", "r1", lines)
    faults = Faults(scene.network)
    scene.at(0.2, lambda: faults.partition(["sender", "r1"]))
    scene.network.run(until=100)
    assert caller.reasons == listener.reasons == ["timeout"]
    for talker in (caller, listener):
        ((_, when),) = talker.closings.values()
        assert 25 < when < 60


@pytest.mark.parametrize("when", [2.05, 2.3, 2.55])
def test_the_timeout_of_a_silent_peer_comes_whatever_its_time_is_rounded_to(when: float) -> None:
    assert (when + SILENCE) - when < SILENCE
    scene = Scene()
    listener = scene.listener("r1")
    caller = scene.caller("sender", "r1")
    faults = Faults(scene.network)
    scene.at(1.0, lambda: faults.partition(["sender", "r1"]))
    scene.at(when, lambda: scene.network.host("sender").call(caller.say, 1000))
    scene.network.run(until=100)
    assert caller.reasons == listener.reasons == ["timeout"]


def test_a_crashed_process_resets_its_connections_at_once() -> None:
    scene = Scene()
    scene.listener("r1")
    caller = scene.caller("sender", "r1", [1000] * 5000)
    faults = Faults(scene.network)
    scene.at(0.2, lambda: faults.crash("r1"))
    scene.network.run(until=100)
    assert caller.reasons == ["reset"]
    assert caller.closings[caller.connections[0]][1] == pytest.approx(0.21, abs=0.002)


def test_after_a_restart_new_connections_are_accepted_and_the_old_one_stays_closed() -> None:
    scene = Scene()
    scene.listener("r1")
    caller = scene.caller("sender", "r1", [100] * 3)
    faults = Faults(scene.network)
    scene.at(0.2, lambda: faults.crash("r1"))
    scene.at(0.3, lambda: caller.call("r1", 0.3))
    scene.at(0.5, lambda: faults.restart("r1", lambda host: scene.listener("r1")))
    scene.at(0.6, lambda: caller.call("r1", 0.6))
    scene.network.run(until=5)
    assert caller.reasons == ["reset", "refused"]
    assert len(caller.openings) == 2
    assert list(scene.talkers["r1"].heard.values()) == [[0, 1, 2]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_host_connects_to_itself_without_a_link(engine: str) -> None:
    scene = Scene(star(loss="100%"), engine)
    host = scene.network.host("r1")
    talker = scene.listener("r1", [5000] * 30)
    host.call(talker.call, "r1")
    scene.network.run(until=1)
    assert len(talker.heard) == 2
    assert all(numbers == list(range(30)) for numbers in talker.heard.values())
    assert sum(counts.offered for counts in scene.network.links()) == 0


def test_a_slow_connection_does_not_block_another() -> None:
    scene = Scene(star(2, rate="10Mbit", delay="1ms"), buffer=20_000)
    faults = Faults(scene.network)
    fast, slow = scene.listener("r1"), scene.listener("r2")
    scene.at(0.0, lambda: faults.slow("r2", 0.5, 4))
    talker = scene.caller("sender", "r1", [1000] * 1000)
    scene.network.host("sender").call(talker.call, "r2")
    scene.network.run(until=4)
    assert sum(map(len, fast.heard.values())) == 1000
    # An application that takes half a second for each message has read seven, and lost none in spite of its small buffer.
    assert list(slow.heard.values()) == [list(range(7))]
    scene.network.run(until=600)
    assert list(slow.heard.values()) == [list(range(1000))]


def test_a_slow_application_gets_all_messages_before_the_end() -> None:
    scene = Scene()
    listener = scene.listener("r1")
    faults = Faults(scene.network)
    scene.at(0.0, lambda: faults.slow("r1", 0.1, 1))
    scene.caller("sender", "r1", [1000] * 50, hangs_up=True)
    scene.network.run(until=60)
    (connection,) = listener.connections
    assert listener.heard[connection] == list(range(50))
    assert listener.closings[connection][0] == "ended"
    assert listener.closings[connection][1] == pytest.approx(5.04, abs=0.05)


class Worker(Talker):
    """A talker that needs 50 ms of processor time for each message, and answers it."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Work and answer."""
        super().receive(message, source, to, now)
        self.ports.work(0.05)
        assert isinstance(source, Connection)
        self.ports.send(Packet(Numbered(0, 8), 8, source))


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_busy_processor_holds_back_the_sender_and_then_the_end(engine: str, slow: bool) -> None:
    scene = Scene(engine=engine, buffer=10_000)
    host = scene.network.host("r1")
    worker = Worker(host)
    host.run(worker, lambda event: None)
    if slow:
        # Both wait: for the processor, and for an application that is slower still, with what waits then as well.
        faults = Faults(scene.network)
        scene.at(0.3, lambda: faults.slow("r1", 0.1, 1))
    caller = scene.caller("sender", "r1", [1000] * 60, hangs_up=True)
    scene.network.run(until=1.0)
    # One buffer of messages was not sent, one was not read, and some are on their way.
    assert sum(map(len, worker.heard.values())) <= 20
    assert not caller.reasons
    (unsaid,) = caller._said.values()
    assert unsaid < 45
    scene.network.run(until=20)
    (connection,) = worker.connections
    assert worker.heard[connection] == list(range(60))
    assert worker.reasons == caller.reasons == ["ended"]
    assert worker.closings[connection][1] == pytest.approx(0.3 + 54 * 0.1 if slow else 3.0, abs=0.3)


def test_a_full_buffer_is_reported_and_so_is_new_room() -> None:
    scene = Scene(star(rate="1Mbit", delay="10ms"), buffer=10_000)
    scene.listener("r1")
    caller = scene.caller("sender", "r1")
    scene.network.run(until=1)
    host = scene.network.host("sender")
    assert [host.call(caller.say, 4000) for _ in range(3)] == [False, False, True]
    scene.network.run(until=2)
    assert host.call(caller.say, 4000) is False


def test_nothing_is_sent_on_a_connection_that_is_closed() -> None:
    scene = Scene()
    scene.listener("r1", hangs_up=True)
    caller = scene.caller("sender", "r1")
    scene.network.run(until=1)
    with pytest.raises(ContractError, match="not open"):
        scene.network.host("sender").send(Packet(Numbered(0, 8), 8, caller.connections[0]))


def test_a_machine_that_hangs_up_before_the_answer_is_told_that_it_ended() -> None:
    scene = Scene()
    listener = scene.listener("r1")
    caller = scene.caller("sender", "r1")
    host = scene.network.host("sender")
    host.hang_up(caller.connections[0])
    assert not caller.closings
    scene.network.run(until=5)
    assert caller.reasons == ["ended"]
    assert not caller.openings
    assert not listener.closings


def test_the_connections_of_a_stopped_machine_are_reset() -> None:
    scene = Scene()
    listener = scene.listener("r1")
    scene.caller("sender", "r1", [1000] * 20)
    scene.at(0.05, scene.network.host("sender").stop)
    scene.network.run(until=5)
    assert list(listener.heard.values()) == [list(range(20))]
    assert listener.reasons == ["reset"]


def test_five_hundred_connections_at_one_host() -> None:
    scene = Scene(star(500, rate="1Mbit", delay="1ms"))
    listener = scene.listener("sender", [100] * 3)
    callers = [scene.caller(f"r{number}", "sender", [200] * 3, hangs_up=False) for number in range(1, 501)]
    scene.network.run(until=3)
    assert len(listener.openings) == 500
    assert all(numbers == [0, 1, 2] for talker in (listener, *callers) for numbers in talker.heard.values())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_channel_that_loses_content_only_loses_no_segment_without_data(engine: str) -> None:
    up = {"model": "content", "p": "100%"}
    scene = Scene(star(rate="10Mbit", delay="10ms", up={"loss": up}), engine)
    listener = scene.listener("r1")
    caller = scene.caller("sender", "r1", [100] * 50, hangs_up=True)
    scene.network.run(until=5)
    (heard,) = listener.heard.values()
    assert heard == list(range(50))
    assert caller.closings
    assert scene.tcp.retransmissions == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_both_ends_may_hang_up_while_one_of_them_has_no_room_for_more(engine: str) -> None:
    scene = Scene(engine=engine, buffer=10_000)
    listener = scene.listener("r1")
    faults = Faults(scene.network)
    scene.at(0.0, lambda: faults.slow("r1", 5.0, 1))
    # The first ten thousand bytes are not read, and the rest waits for room when the caller hangs up.
    caller = scene.caller("sender", "r1", [1000] * 16, hangs_up=True)
    scene.network.run(until=2)
    assert not caller._said
    assert not caller.reasons
    host = scene.network.host("r1")
    host.call(listener.hang_up)
    scene.network.run(until=60)
    assert caller.reasons == listener.reasons == ["ended"]


def test_the_first_timeout_after_probes_of_a_closed_window_reduces_the_threshold() -> None:
    topology = star(rate="10Mbit", delay="10ms")
    scene = Scene(topology, control="reno", mss=1000, buffer=20_000)
    scene.listener("r1")
    faults = Faults(scene.network)
    scene.at(0.0, lambda: faults.slow("r1", 2.0, 1))
    caller = scene.caller("sender", "r1", [1000] * 60)
    (end,) = caller.connections
    assert isinstance(end, TcpEnd)
    scene.network.run(until=1)
    # The window is closed until the application has read two messages.
    before = end.window
    while end._nxt == end._una and scene.network.now < 20:
        scene.network.run(until=scene.network.now + 0.001)
    faults.cut("r1", topology.switches[0])
    scene.network.run(until=scene.network.now + 0.5)
    assert end.window == 1.0
    assert end._control.threshold == before / 2

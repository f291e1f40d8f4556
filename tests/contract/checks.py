"""The checks themselves: functions of a case, so that they run on real protocols and on toys that break the contract."""

from collections import Counter
from collections.abc import Callable

from protocols.events import FlushCompleted, ObjectReceived, SenderSilent
from protocols.machine import Content, Event, Message, Offer, Sink
from protocols.rng import Rng, key_of
from tests.contract.cases import Case
from tests.contract.session import Session, contents_of, sizes
from tests.contract.worlds import BenchWorld, World
from tests.support.content import Extent, FailingSink, MemorySink
from tests.support.losses import Drop, any_of, everything_to, nothing, randomly

__all__ = [
    "answers_after_events",
    "arrives",
    "dead_receiver_stops_nobody",
    "early_wakes_change_nothing",
    "ends_whatever_is_lost",
    "failing_sink_ends_its_object",
    "full_network_is_respected",
    "late_wakes_are_harmless",
    "quiet_at_the_end",
    "repeats_itself",
    "simulated_content_arrives",
    "strangers_are_ignored",
    "unwanted_objects_are_left",
]

QUIET = 1e5
"""Seconds after which nobody may have anything to say any more."""


def bench_session(case: Case, drop: Drop = nothing, *, count: int = 3, late: float = 0.0) -> tuple[Session, BenchWorld]:
    """A session on fake hosts."""
    world = BenchWorld(case, count, 0.0)
    world.bench.drop = drop
    for host in world.bench.hosts.values():
        host.late = late
    return Session(case, world), world


def arrives(case: Case, make: Callable[[Case, int, float], World], loss: float) -> None:
    """Objects of all sizes arrive equal at every receiver, once each."""
    world = make(case, 4, loss)
    try:
        session = Session(case, world)
        session.submit(*contents_of(sizes))
        session.run()
        session.expect_everything()
    finally:
        world.close()


def answers_after_events(case: Case, make: Callable[[Case, int, float], World]) -> None:
    """An application may submit the next object while it hears of the last."""
    world = make(case, 2, 0.0)
    try:
        session = Session(case, world)
        rest = contents_of(sizes[:3])

        def react(event: Event) -> None:
            if isinstance(event, FlushCompleted) and rest:
                session.submit(rest.pop())

        session.react = react
        session.submit(*contents_of(sizes[3:4]))
        world.run(20.0, lambda: not rest and session.flushed())
        session.expect_everything()
    finally:
        world.close()


def quiet_at_the_end(case: Case) -> None:
    """When all is said nobody speaks any more, and nobody wants to be woken for ever."""
    session, world = bench_session(case, randomly(0.1))
    session.submit(*contents_of(sizes))
    world.bench.run(QUIET)
    session.expect_everything()
    said = world.bench.kinds()
    world.bench.run(3 * QUIET)
    assert world.bench.kinds() == said, f"after {QUIET} s: {world.bench.kinds() - said}"
    assert world.bench.kinds().total() < 20 * sum(sizes) / 500, f"too talkative: {world.bench.kinds()}"


def late_wakes_are_harmless(case: Case) -> None:
    """A busy computer wakes machines late; everything still arrives."""
    session, _ = bench_session(case, randomly(0.1), late=0.05)
    session.submit(*contents_of(sizes))
    session.run(200.0)
    session.expect_everything()


def early_wakes_change_nothing(case: Case) -> None:
    """A machine woken before its time does nothing: packets and events are the same at the same times."""
    assert transcripts(case, pokes=False) == transcripts(case, pokes=True)


def repeats_itself(case: Case) -> None:
    """The same session twice says the same at the same times."""
    assert transcripts(case, pokes=False) == transcripts(case, pokes=False)


def transcripts(case: Case, *, pokes: bool) -> list[list[tuple[float, str]]]:
    """What every host said and heard in a lossy session; `pokes` wakes everybody at odd times besides."""
    session, world = bench_session(case, randomly(0.1))
    session.submit(*contents_of(sizes))
    for i in range(1, 200):
        for host in world.bench.hosts.values() if pokes else ():
            machine, when = host.machine, 0.0037 * i
            assert machine is not None
            host.later(when, lambda host=host, machine=machine, when=when: machine.deadline > when and host.wake(when))  # type: ignore[misc]
    session.run()
    session.expect_everything()
    return [host.transcript for host in world.bench.hosts.values()]


def ends_whatever_is_lost(case: Case, drop: Drop) -> None:
    """Under any loss the session ends; every object that a receiver knows of is delivered once, equal, or reported lost."""
    session, world = bench_session(case, drop)
    session.submit(*contents_of(sizes))
    world.bench.run(QUIET)
    assert session.flushed(), "the sender never finished"
    for number in (1, 2):
        ended = Counter(session.received(number)) + Counter(session.aborted(number))
        known = {object_id for at, object_id in session.sinks if at == number}
        # A sender that gave up before the receiver had everything is reported as a whole, by its silence.
        silent = any(isinstance(event, SenderSilent) for event in session.events[number])
        assert silent or not known - set(ended), f"receiver {number}: no word of {known - set(ended)}"
        assert set(ended.values()) <= {1}, f"receiver {number}: ended more than once: {ended}"
        for object_id in session.received(number):
            session.expect_equal(number, object_id)


def dead_receiver_stops_nobody(case: Case) -> None:
    """A receiver that hears nothing any more does not keep the others from their content."""
    session, _ = bench_session(case, any_of(everything_to("n1", since=0.03), randomly(0.1)), count=4)
    session.submit(*contents_of(sizes))
    session.run(1000.0)
    assert session.flushed()
    for number in (2, 3):
        assert sorted(session.received(number)) == sorted(session.sent)


class Stranger(Message):
    """A message of a protocol nobody here speaks."""

    __slots__ = ()
    kind = "stranger"


def strangers_are_ignored(case: Case, others: list[Message]) -> None:
    """Messages of other protocols, and old ones of its own in any order and from anywhere, make no machine raise."""
    before, world = bench_session(case, randomly(0.2))
    before.submit(*contents_of(sizes))
    before.run()
    old = [packet.message for host in world.bench.hosts.values() for packet in host.packets]
    noise = [Stranger(), *others, *old, *old]
    session, world = bench_session(case)
    world.bench.strangers.add("stranger")
    session.submit(*contents_of(sizes))
    rng = Rng(key_of(1, "shuffle"))
    for _ in range(2 * len(noise)):
        message = noise[int(rng.uniform() * len(noise))]
        when = rng.uniform() * 0.5
        for host in world.bench.hosts.values():
            host.later(when, lambda host=host, message=message: host.deliver(message, "stranger", world.group, host.now))  # type: ignore[misc]
    world.bench.run(QUIET)


def failing_sink_ends_its_object(case: Case, verb: str, after: int, abort_too: bool) -> None:
    """A sink that raises OSError ends its object with an event at this receiver; everything else arrives."""
    broken: list[FailingSink] = []

    def open_sink(number: int, offer: Offer) -> Sink:
        if number != 1 or offer.size != max(sizes):
            return MemorySink(offer.size)
        sink = Doomed(offer.size, verb, after) if abort_too else FailingSink(offer.size, verb, after)
        broken.append(sink)
        return sink

    world = BenchWorld(case, 3, 0.1)
    session = Session(case, world, open_sink)
    contents = contents_of((*sizes, 3000))
    session.submit(*contents)
    world.bench.run(QUIET)
    lost = next(object_id for object_id, content in session.sent.items() if content.source.size == max(sizes))
    assert len(broken) == 1
    if verb == "read" and not broken[0].failures:
        # Protocols without erasure coding read nothing back.
        session.expect_everything()
        return
    assert broken[0].failures, f"{verb} was never called"
    assert session.aborted(1) == [lost], session.events[1]
    assert broken[0].info is None
    for number, expected in ((1, set(session.sent) - {lost}), (2, set(session.sent))):
        assert sorted(session.received(number)) == sorted(expected)
        for object_id in expected:
            session.expect_equal(number, object_id)


class Doomed(FailingSink):
    """A sink whose `abort` fails as well."""

    def abort(self) -> None:
        """Fails too."""
        raise OSError(5, "broken (abort)")


def unwanted_objects_are_left(case: Case) -> None:
    """An object the application does not want is neither delivered nor reported lost, and the others are."""
    world = BenchWorld(case, 3, 0.1)
    session = Session(case, world, lambda number, offer: MemorySink(offer.size) if offer.size != max(sizes) else None)
    session.submit(*contents_of((*sizes, 3000)))
    world.bench.run(QUIET)
    assert session.flushed()
    wanted = [object_id for object_id, content in session.sent.items() if content.source.size != max(sizes)]
    for number in (1, 2):
        assert sorted(session.received(number)) == wanted
        assert not session.aborted(number)


def simulated_content_arrives(case: Case) -> None:
    """Content that has a size but no bytes is accounted for, with and without loss."""
    for loss in (0.0, 0.1):
        world = BenchWorld(case, 3, loss)
        session = Session(case, world)
        session.submit(*(Content(Extent(n), b"x") for n in sizes))
        session.run()
        assert session.flushed()
        for number in (1, 2):
            found = [(event.size, event.info) for event in session.events[number] if isinstance(event, ObjectReceived)]
            assert sorted(found) == sorted((n, b"x") for n in sizes)


def full_network_is_respected(case: Case) -> None:
    """After the answer "full" a sender is silent until it is resumed, and then goes on to the end."""
    session, world = bench_session(case, count=2)
    host = world.bench["n0"]
    host.room = room = 3
    session.submit(*contents_of((20_000,)))
    for _ in range(1000):
        before = session.sender.sent
        world.bench.run(world.bench.now + 0.2, session.flushed)
        assert host.room >= 0, f"{session.sender.sent - before} packets into a network with room for {room}"
        if session.flushed():
            break
        if host.room == 0:
            host.resume(world.bench.now, room)
    session.expect_everything()

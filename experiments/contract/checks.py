"""The rules of the contract, one function each: it runs sessions of a `Case` and raises AssertionError for a broken rule.

The first line of each docstring is the rule as `mcastlab contract` prints it. Sessions send objects of 0, 1, 500, 501 and
20,000 bytes (`sizes`) in segments of 500 bytes, 45 segments in all.
"""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import FrozenInstanceError, fields, is_dataclass
from math import inf
from typing import Any

from experiments.contract.case import Case
from experiments.contract.content import CheckedSink, FailingSink
from experiments.contract.damage import Damage
from experiments.contract.losses import Drop, any_of, everything_to, nothing, randomly
from experiments.contract.session import ContractSession, contents_of, sizes
from experiments.contract.watch import Watch
from experiments.contract.worlds import BenchWorld, ContractWorld
from experiments.running.content import Extent
from protocols.errors import ConfigError, WireError
from protocols.events import FlushCompleted, ObjectReceived, SenderSilent
from protocols.machine import Content, Event, Message, Offer, Sink
from protocols.rng import Rng, key_of
from protocols.settings import Setting
from protocols.snapshot import Snapshot

__all__ = [
    "FailingAbortSink",
    "ForeignMessage",
    "answers_after_events",
    "codec_keeps_messages_and_refuses_noise",
    "config_is_checked",
    "counters_are_numbers",
    "damaged_messages_are_harmless",
    "arrives",
    "bench_session",
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
    "transcripts",
    "unwanted_objects_are_left",
]

QUIET = 1e5
"""Simulated seconds by which every machine must have stopped sending."""
MOST_PACKETS = 20
"""Packets that sender and receivers together may send for each segment of content, at 10 % loss with two receivers."""
ROUNDTRIPS = 400
"""Damaged payloads given to `Codec.decode`."""
DAMAGED_UNTIL = 5.0
"""Seconds after which a session with damaged messages ends."""


def bench_session(case: Case, drop: Drop = nothing, *, count: int = 3, late: float = 0.0) -> tuple[ContractSession, BenchWorld]:
    """Make a session of `count` fake hosts and servers, one the sender; wake-ups come up to `late` seconds late."""
    world = BenchWorld(case, count + len(case.servers), 0.0)
    world.bench.drop = drop
    for host in world.bench.hosts.values():
        host.late = late
    return ContractSession(case, world), world


def arrives(case: Case, make: Callable[[Case, int, float], ContractWorld], loss: float) -> None:
    """Every object arrives at every receiver, equal and once.

    `loss` is the probability that a receiver's link loses a packet, independent of other receivers. A sender notifies
    `FlushCompleted` for an object when it has sent the last packet for this and all earlier objects; each receiver has to be
    complete by then.
    """
    world = make(case, 4 + len(case.servers), loss)
    try:
        session = ContractSession(case, world)
        session.submit(*contents_of(sizes))
        session.run()
        session.expect_everything()
    finally:
        world.close()


def answers_after_events(case: Case, make: Callable[[Case, int, float], ContractWorld]) -> None:
    """An application may submit the next object in its handler of `FlushCompleted`."""
    world = make(case, 2 + len(case.servers), 0.0)
    try:
        session = ContractSession(case, world)
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
    """A finished session sends nothing more, and took fewer than 20 packets for each segment, at 10 % loss.

    The check counts all packets of the sender and two receivers (data, repairs, requests, announcements) until 100,000 s for
    21,002 bytes in segments of 500: fewer than 840 packets are allowed, and none between 100,000 s and 300,000 s. Kinds that
    the protocol declares as `periodic` do not count.
    """
    session, world = bench_session(case, randomly(0.1))
    session.submit(*contents_of(sizes))
    world.bench.run(QUIET)
    session.expect_everything()
    said = _sent_by_kind(case, world)
    world.bench.run(3 * QUIET)
    assert _sent_by_kind(case, world) == said, f"after {QUIET} s: {_sent_by_kind(case, world) - said}"
    most = MOST_PACKETS * sum(sizes) / 500
    assert said.total() < most, f"{said.total()} packets were sent; the limit is {most:.0f}"


def _sent_by_kind(case: Case, world: BenchWorld) -> Counter[str]:
    """Return how many packets of each kind that is not periodic were sent."""
    return Counter({kind: count for kind, count in world.bench.kinds().items() if kind not in case.protocol.periodic})


def late_wakes_are_harmless(case: Case) -> None:
    """Wake-ups that come up to 50 ms late do no harm: everything still arrives."""
    session, _ = bench_session(case, randomly(0.1), late=0.05)
    session.submit(*contents_of(sizes))
    session.run(200.0)
    session.expect_everything()


def early_wakes_change_nothing(case: Case) -> None:
    """A wake-up before the deadline changes nothing: the same packets and events at the same times."""
    assert transcripts(case, pokes=False) == transcripts(case, pokes=True)


def repeats_itself(case: Case) -> None:
    """A session repeats itself: equal random streams give equal packets and events at equal times."""
    assert transcripts(case, pokes=False) == transcripts(case, pokes=False)


def transcripts(case: Case, *, pokes: bool) -> list[list[tuple[float, str]]]:
    """Run a lossy session and return the (time, packet or event) list of every host; `pokes` adds early wake-ups."""
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
    """Under heavy loss the session ends, and each object a receiver opened ends once: received equal, or aborted.

    The sender notifies `FlushCompleted` under any loss. A receiver that accepted an object notifies exactly one of
    `ObjectReceived` and `ObjectAborted` for it, or `SenderSilent` for the sender as a whole.
    """
    session, world = bench_session(case, drop)
    session.submit(*contents_of(sizes))
    world.bench.run(QUIET)
    assert session.flushed(), "the sender never notified FlushCompleted for its last object"
    for number in (1, 2):
        ended = Counter(session.received(number)) + Counter(session.aborted(number))
        known = {object_id for at, object_id in session.sinks if at == number}
        # SenderSilent stands for every open object of a sender that stopped sending.
        silent = any(isinstance(event, SenderSilent) for event in session.events[number])
        assert silent or not known - set(ended), f"receiver {number}: neither received nor aborted: {known - set(ended)}"
        assert set(ended.values()) <= {1}, f"receiver {number}: ended more than once: {ended}"
        for object_id in session.received(number):
            session.expect_equal(number, object_id)


def dead_receiver_stops_nobody(case: Case) -> None:
    """A receiver that stops receiving does not keep the others from their content."""
    session, _ = bench_session(case, any_of(everything_to("n1", since=0.03), randomly(0.1)), count=4)
    session.submit(*contents_of(sizes))
    session.run(1000.0)
    assert session.flushed()
    for number in (2, 3):
        assert sorted(session.received(number)) == sorted(session.sent)


class ForeignMessage(Message):
    """A message that belongs to none of the protocols."""

    __slots__ = ()
    kind = "stranger"


def strangers_are_ignored(case: Case, others: list[Message]) -> None:
    """Foreign messages, and old ones of its own in any order from any address, make no machine raise."""
    before, world = bench_session(case, randomly(0.2))
    before.submit(*contents_of(sizes))
    before.run()
    old = [packet.message for host in world.bench.hosts.values() for packet in host.packets]
    noise = [ForeignMessage(), *others, *old, *old]
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
    """A sink that raises OSError ends its object with `ObjectAborted` at this receiver; everything else arrives.

    `verb` is the method that fails, from its call number `after` on (0: the first); `abort_too`: so does `abort`.
    """
    broken: list[FailingSink] = []

    def open_sink(number: int, offer: Offer) -> Sink:
        if number != 1 or offer.size != max(sizes):
            return CheckedSink(offer.size)
        sink = FailingAbortSink(offer.size, verb, after) if abort_too else FailingSink(offer.size, verb, after)
        broken.append(sink)
        return sink

    world = BenchWorld(case, 3 + len(case.servers), 0.1)
    session = ContractSession(case, world, open_sink)
    contents = contents_of((*sizes, 3000))
    session.submit(*contents)
    world.bench.run(QUIET)
    lost = next(object_id for object_id, content in session.sent.items() if content.source.size == max(sizes))
    assert len(broken) == 1
    if verb == "read" and not broken[0].failures:
        # Protocols without erasure coding never read from a sink.
        session.expect_everything()
        return
    assert broken[0].failures, f"{verb} was never called"
    assert session.aborted(1) == [lost], session.events[1]
    assert broken[0].info is None
    for number, expected in ((1, set(session.sent) - {lost}), (2, set(session.sent))):
        assert sorted(session.received(number)) == sorted(expected)
        for object_id in expected:
            session.expect_equal(number, object_id)


class FailingAbortSink(FailingSink):
    """A failing sink whose `abort` fails, too."""

    def abort(self) -> None:
        """Raise OSError."""
        raise OSError(5, "broken (abort)")


def unwanted_objects_are_left(case: Case) -> None:
    """An object for which `accept` returns None is neither received nor aborted, and the others arrive."""
    world = BenchWorld(case, 3 + len(case.servers), 0.1)
    session = ContractSession(case, world, lambda number, offer: CheckedSink(offer.size) if offer.size != max(sizes) else None)
    session.submit(*contents_of((*sizes, 3000)))
    world.bench.run(QUIET)
    assert session.flushed()
    wanted = [object_id for object_id, content in session.sent.items() if content.source.size != max(sizes)]
    for number in (1, 2):
        assert sorted(session.received(number)) == wanted
        assert not session.aborted(number)


def simulated_content_arrives(case: Case) -> None:
    """Content that has a size but no bytes (`Source.read` returns None) is received, with and without loss."""
    for loss in (0.0, 0.1):
        world = BenchWorld(case, 3 + len(case.servers), loss)
        session = ContractSession(case, world)
        session.submit(*(Content(Extent(n), b"x") for n in sizes))
        session.run()
        assert session.flushed()
        for number in (1, 2):
            found = [(event.size, event.info) for event in session.events[number] if isinstance(event, ObjectReceived)]
            assert sorted(found) == sorted((n, b"x") for n in sizes)


def full_network_is_respected(case: Case) -> None:
    """After `send` returned "full" a sender sends nothing until `resume`, and then completes the session."""
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


def config_is_checked(case: Case) -> None:
    """The config is a frozen dataclass of settings with `rate` and `segment`, and refuses values out of range.

    A protocol that is carried by connections needs no `rate`.
    """
    kind = case.protocol.config
    assert is_dataclass(kind), f"{kind.__name__} is no dataclass"
    known = {item.name: item.metadata.get("setting") for item in fields(kind)}
    lacking = [name for name, found in known.items() if not isinstance(found, Setting)]
    assert not lacking, f"not made by setting(...): {', '.join(lacking)}"
    for name, unit in (("rate", "rate"), ("segment", "bytes")):
        found = known.get(name)
        if found is None and name == "rate" and case.protocol.connected:
            # TCP paces what it carries.
            continue
        assert found is not None, f"{kind.__name__} has no {name!r} in {unit}"
        assert found.unit == unit, f"{name!r} is in {found.unit}, not in {unit}"
    value: Any = kind(**case.settings)
    try:
        value.segment = 1
    except FrozenInstanceError:
        pass
    else:
        raise AssertionError(f"{kind.__name__} is not frozen")
    for name, found in known.items():
        if isinstance(found, Setting) and found.low > -inf:
            _refuses(kind, {**case.settings, name: found.low - 1})


def counters_are_numbers(case: Case) -> None:
    """`counts` returns whole numbers by name, `held` (kept, limit) pairs within their limits, and `snapshot` statistics.

    Counters with the names of docs/protocols.md go into the metrics of a run: data_sent, repairs_sent, nacks_sent, ...
    """
    session, world = bench_session(case, randomly(0.1))
    session.submit(*contents_of(sizes))
    session.run()
    for host in world.bench.hosts.values():
        watch = host.machine
        assert isinstance(watch, Watch)
        counts, held = watch.inner.counts(), watch.inner.held()
        assert all(isinstance(count, int) and count >= 0 for count in counts.values()), f"counts: {counts}"
        assert all(kept <= limit for kept, limit in held.values()), f"held: {held}"
        told = watch.inner.snapshot(world.bench.now)
        assert isinstance(told, Snapshot), f"snapshot: {told!r} is no Snapshot"
        json.dumps(told.plain())


def _refuses(kind: type, settings: dict[str, Any]) -> None:
    try:
        kind(**settings)
    except ConfigError:
        return
    raise AssertionError(f"{kind.__name__} takes values below their minimum; call check(self) in __post_init__")


def codec_keeps_messages_and_refuses_noise(case: Case) -> None:
    """Messages survive encoding and decoding, `identity` included; damaged payloads raise WireError and nothing else."""
    session, world = bench_session(case, randomly(0.2))
    session.submit(*contents_of(sizes))
    session.run()
    codec, rng = case.codec(), Rng(key_of(1, "noise"))
    payloads = []
    for packet in (packet for host in world.bench.hosts.values() for packet in host.packets):
        payloads.append(codec.encode(packet.message))
        found = codec.decode(payloads[-1])
        assert found.kind == packet.message.kind, f"{packet.message.kind} became {found.kind}"
        assert found.identity == packet.message.identity, (
            f"{found.kind}: identity {found.identity}, not {packet.message.identity}"
        )
        assert codec.encode(found) == payloads[-1], f"{found.kind} is encoded differently after decoding"
    for _ in range(ROUNDTRIPS):
        payload = bytearray(payloads[int(rng.uniform() * len(payloads))])
        del payload[int(rng.uniform() * (len(payload) + 1)) :]
        if payload:
            payload[int(rng.uniform() * len(payload))] ^= 1 + int(rng.uniform() * 255)
        with suppress(WireError):
            codec.decode(bytes(payload))


def damaged_messages_are_harmless(case: Case) -> None:
    """Messages with damaged fields make no machine raise, whatever they announce."""
    session, world = bench_session(case)
    damage = Damage(case.codec())
    for host in world.bench.hosts.values():
        host.damage = damage
        # A damaged name or size makes another object of it.
        host.accepting = lambda offer: CheckedSink(offer.size) if offer.size <= max(sizes) else None
    session.submit(*contents_of(sizes))
    world.bench.run(DAMAGED_UNTIL)
    assert damage.copies, "the codec refuses every damaged payload, so that no field can be damaged"

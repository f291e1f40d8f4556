"""One session with encoded messages, with message objects, and with content that has sizes but no bytes."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.bench import Bench
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.losses import randomly
from experiments.running.content import Extent
from protocols.events import FlushCompleted, ObjectAborted, ObjectReceived, SenderSilent
from protocols.machine import Content
from protocols.norm import NormCodec, NormReceiver, NormSender
from tests.protocols.norm.scenes import GROUP, ReceiverHarness, SenderHarness, quick


@dataclass(frozen=True)
class Plan:
    """Parameters of one session."""

    parameters: dict[str, Any]
    sizes: tuple[int, ...]
    info: bytes
    joins: tuple[float, ...]
    """Join time of each receiver in seconds."""
    pause: float
    """Seconds between the submissions."""
    loss: float
    seed: int


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw sessions over all parameters that change messages."""
    block = draw(st.sampled_from([1, 3, 8, 30]))
    fec = draw(st.sampled_from([0, 5, 129]))
    parity = draw(st.sampled_from([0, 1, 2, 6])) if fec else 0
    parameters = {
        "block": block,
        "fec": fec,
        "parity": parity,
        "auto_parity": draw(st.integers(0, min(parity, 2))),
        "backoff": draw(st.sampled_from([0, 1, 4])),
        "robust": draw(st.sampled_from([2, 8])),
        "probing": draw(st.sampled_from(["active", "passive", "none"])),
        "cache_min": 2,
        "cache_max": draw(st.sampled_from([2, 8])),
        "probe_min": 0.1,
    }
    sizes = tuple(draw(st.lists(st.integers(0, 3000), min_size=1, max_size=4)))
    info = draw(st.sampled_from([b"", b"name"]))
    joins = tuple(draw(st.lists(st.sampled_from([0.0, 0.0, 0.002, 0.3]), min_size=1, max_size=3)))
    pause = draw(st.sampled_from([0.0, 0.001, 0.2]))
    return Plan(parameters, sizes, info, joins, pause, draw(st.floats(0.0, 0.4)), draw(st.integers(0, 2**32)))


Story = tuple[list[list[tuple[float, str]]], list[dict[str, int]]]


def run_session(plan: Plan, *, wire: bool, counted: bool) -> tuple[Story, Bench]:
    """Run the session and return (all messages, events and counters; the bench)."""
    names = ["sender", *(f"r{i}" for i in range(len(plan.joins)))]
    bench = Bench(names, drop=randomly(plan.loss, plan.seed), codec=NormCodec() if wire else None)
    config = quick(**plan.parameters)
    for number, (name, when) in enumerate(zip(names[1:], plan.joins, strict=True)):
        receiver = bench[name]
        receiver.later(when, partial(receiver.run, NormReceiver(receiver, config, 2 + number, GROUP)))
    bench.run(until=0.0)
    host = bench["sender"]
    sender = NormSender(host, config, 1, GROUP)
    host.run(sender)

    def submit(content: Content) -> None:
        host.call(sender.submit, content)

    for number, size in enumerate(plan.sizes):
        source = Extent(size) if counted else Bytes(pattern(size, number + 1))
        host.later(number * plan.pause, partial(submit, Content(source, plan.info)))
    bench.run(until=1e5)
    machines = [host.machine for host in bench.hosts.values()]
    return ([host.transcript for host in bench.hosts.values()], [m.counts() for m in machines if m]), bench


@settings(max_examples=60, deadline=None, derandomize=True)
@given(plan=plans())
def test_encoded_messages_message_objects_and_counted_content_give_equal_sessions(plan: Plan) -> None:
    story, bench = run_session(plan, wire=True, counted=False)
    assert run_session(plan, wire=False, counted=False)[0] == story
    assert run_session(plan, wire=False, counted=True)[0] == story
    check_ends(plan, bench)


def check_ends(plan: Plan, bench: Bench) -> None:
    """Check that the sender ended, and that every known object was delivered once, aborted, or left by a silent sender."""
    assert any(isinstance(event, FlushCompleted) for event in bench["sender"].events)
    for host in list(bench.hosts.values())[1:]:
        ended = Counter(event.object_id for event in host.events if isinstance(event, (ObjectReceived, ObjectAborted)))
        assert set(ended.values()) <= {1}
        silent = any(isinstance(event, SenderSilent) for event in host.events)
        for (_, object_id), sink in host.sinks.items():
            assert isinstance(sink, CheckedSink)
            assert silent or object_id in ended
            if sink.info is not None:
                assert bytes(sink.content) == pattern(plan.sizes[object_id], object_id + 1)
                assert sink.info == plan.info


@settings(max_examples=40, deadline=None, derandomize=True)
@given(plan=plans())
def test_with_enough_flushes_every_receiver_present_gets_everything(plan: Plan) -> None:
    parameters = {**plan.parameters, "robust": 40, "cache_max": 8, "cache_min": 8}
    joins = tuple(0.0 for _ in plan.joins)
    _, bench = run_session(replace(plan, parameters=parameters, joins=joins, loss=plan.loss / 2), wire=False, counted=True)
    for host in list(bench.hosts.values())[1:]:
        received = sorted(event.object_id for event in host.events if isinstance(event, ObjectReceived))
        assert received == list(range(len(plan.sizes)))


def received(senders: list[SenderHarness], drop: int) -> ReceiverHarness:
    """Return a receiver of all messages of these senders in sequence, except every `drop`-th."""
    receiver = ReceiverHarness()
    for sender in senders:
        start = receiver.now
        for number, (when, _, message) in enumerate(sender.sent):
            receiver.run_until(start + when)
            if number % drop != drop - 1:
                receiver.receive(message)
    return receiver


def restart(counted: bool) -> list[SenderHarness]:
    """Return a sender that is stopped in the middle, and its next instance that starts again."""
    first, second = SenderHarness(), SenderHarness(instance=8)
    for sender in (first, second):
        sender.submit(1500, 2400, counted=counted)
    first.run_until(0.003)
    second.run_until(5.0)
    return [first, second]


def test_a_restart_gives_the_same_session_with_counted_content() -> None:
    for drop in (3, 7, 10**9):
        stories = [received(restart(counted), drop).host.transcript for counted in (False, True)]
        assert stories[0] == stories[1]
    receiver = received(restart(True), 10**9)
    assert receiver.received() == [0, 0, 1]
    assert receiver.aborted() == [(1, "the sender restarted")]

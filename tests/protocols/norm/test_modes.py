"""The same session with content as bytes through the codec, with bytes as objects, and with content only accounted for."""

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
from tests.protocols.norm.scenes import GROUP, Listener, Talker, quick


@dataclass(frozen=True)
class Plan:
    """One session."""

    parameters: dict[str, Any]
    sizes: tuple[int, ...]
    info: bytes
    joins: tuple[float, ...]
    """When each receiver begins to listen."""
    pause: float
    """Seconds between the submissions."""
    loss: float
    seed: int


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Sessions over all parameters that change what is said."""
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


def play(plan: Plan, *, wire: bool, counted: bool) -> tuple[Story, Bench]:
    """(what everybody said, heard and counted; the bench)."""
    names = ["sender", *(f"r{i}" for i in range(len(plan.joins)))]
    bench = Bench(names, drop=randomly(plan.loss, plan.seed), codec=NormCodec() if wire else None)
    config = quick(**plan.parameters)
    for number, (name, when) in enumerate(zip(names[1:], plan.joins, strict=True)):
        listener = bench[name]
        listener.later(when, partial(listener.run, NormReceiver(listener, config, 2 + number, GROUP)))
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
def test_bytes_objects_and_accounted_content_tell_the_same_story(plan: Plan) -> None:
    story, bench = play(plan, wire=True, counted=False)
    assert play(plan, wire=False, counted=False)[0] == story
    assert play(plan, wire=False, counted=True)[0] == story
    check_ends(plan, bench)


def check_ends(plan: Plan, bench: Bench) -> None:
    """The sender ended; what a receiver knows of was delivered equal and once, or reported lost, or its sender is silent."""
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
def test_with_enough_announcements_everybody_who_was_there_gets_everything(plan: Plan) -> None:
    parameters = {**plan.parameters, "robust": 40, "cache_max": 8, "cache_min": 8}
    joins = tuple(0.0 for _ in plan.joins)
    _, bench = play(replace(plan, parameters=parameters, joins=joins, loss=plan.loss / 2), wire=False, counted=True)
    for host in list(bench.hosts.values())[1:]:
        received = sorted(event.object_id for event in host.events if isinstance(event, ObjectReceived))
        assert received == list(range(len(plan.sizes)))


def heard(talkers: list[Talker], drop: int) -> Listener:
    """A receiver of what the talkers said one after the other, without every `drop`-th message."""
    listener = Listener()
    for talker in talkers:
        start = listener.now
        for number, (when, _, message) in enumerate(talker.said):
            listener.until(start + when)
            if number % drop != drop - 1:
                listener.hear(message)
    return listener


def restarted(counted: bool) -> list[Talker]:
    """A sender that is stopped in the middle, and begins anew as another instance."""
    first, second = Talker(), Talker(instance=8)
    for talker in (first, second):
        talker.submit(1500, 2400, counted=counted)
    first.until(0.003)
    second.until(5.0)
    return [first, second]


def test_a_restart_tells_the_same_story_with_accounted_content() -> None:
    for drop in (3, 7, 10**9):
        stories = [heard(restarted(counted), drop).host.transcript for counted in (False, True)]
        assert stories[0] == stories[1]
    listener = heard(restarted(True), 10**9)
    assert listener.received() == [0, 0, 1]
    assert listener.aborted() == [(1, "the sender restarted")]

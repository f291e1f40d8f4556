"""A line: the impairments of one direction of a link, with their counters and keys."""

from math import sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.rng import extend, key_of
from topologies.channels import Bernoulli, ContentLoss, Recorded, Scripted
from topologies.delays import DelayModel, NormalDelay, ParetoDelay, TraceDelay, UniformDelay, longer
from topologies.drop_tail import DropTailQueue
from topologies.ethernet import frames_of
from topologies.line import Line
from topologies.queues import Codel
from topologies.script import Drop
from topologies.spec import LinkAttributes, LinkSpec

KEY = key_of(1, "loss", "s1", "r")


def delays(spec: LinkSpec, packets: int, gap: float = 1.0) -> list[float]:
    """Return the delays of many packets, in seconds."""
    line = Line(spec, KEY)
    return [line.offer(n, 100, n, "data", n * gap)[0][1] - n * gap for n in range(packets)]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 2.0]), st.integers(1, 400), st.none() | st.integers(0, 9)), max_size=40),
    st.sampled_from([None, 0, 3]),
)
def test_a_plain_line_is_a_drop_tail_queue_a_constant_delay_and_loss(
    steps: list[tuple[float, int, int | None]], queue: int | None
) -> None:
    spec = LinkSpec(rate=100.0, delay=0.25, queue=queue, overhead=42, loss=Bernoulli(p=0.3))
    line, port, sampler, now = Line(spec, KEY), DropTailQueue(spec.rate, queue), spec.loss.link(KEY), 0.0
    assert sampler is not None
    for gap, size, identity in steps:
        now += gap
        lost, end = sampler.lost(identity), port.offer(size + 42, now)
        right = [] if lost or end is None else [("it", end + spec.delay)]
        assert list(line.offer("it", size, identity, "data", now)) == right


@pytest.mark.parametrize(
    ("model", "mean", "sd"),
    [
        (UniformDelay(least=0.01, most=0.03), 0.02, 0.02 / sqrt(12)),
        (NormalDelay(mean=0.05, sd=0.004), 0.05, 0.004),
        # A Lomax tail of mean m and shape a has variance m ** 2 * a / (a - 2).
        (ParetoDelay(least=0.01, mean=0.02, shape=5.0), 0.02, 0.01 * sqrt(5 / 3)),
    ],
)
def test_delays_have_the_mean_and_spread_of_their_model(model: Any, mean: float, sd: float) -> None:
    found = delays(LinkSpec(jitter=model), 20_000)
    average = sum(found) / len(found)
    assert average == pytest.approx(mean, abs=4 * sd / sqrt(len(found)))
    # The tail makes the Pareto's own spread uncertain.
    assert sqrt(sum((x - average) ** 2 for x in found) / len(found)) == pytest.approx(sd, rel=0.08)


def test_a_longer_line_delays_everything_by_the_same() -> None:
    models: list[DelayModel] = [
        UniformDelay(least=0.01, most=0.03),
        NormalDelay(mean=0.05, sd=0.004),
        ParetoDelay(least=0.01, mean=0.02),
        TraceDelay(samples=(0.1, 0.3)),
    ]
    for model in models:
        short, far = delays(LinkSpec(jitter=model), 50), delays(LinkSpec(jitter=model.longer(1.0)), 50)
        assert far == pytest.approx([delay + 1.0 for delay in short])
    assert longer(0.5, 1.0) == 1.5


def test_a_normal_delay_is_never_less_than_its_least() -> None:
    assert min(delays(LinkSpec(jitter=NormalDelay(mean=0.01, sd=0.01, least=0.008)), 1000)) == pytest.approx(0.008)


def test_recorded_delays_come_in_their_order(tmp_path: Any) -> None:
    file = tmp_path / "delays"
    file.write_text("5ms\n0.001\n\n20us\n")
    model = TraceDelay.model_validate({"model": "trace", "file": str(file)})
    assert delays(LinkSpec(jitter=model), 5) == pytest.approx([0.005, 0.001, 0.00002, 0.005, 0.001])
    file.write_text("5 apples\n")
    with pytest.raises(ValueError, match="is not a list of delays"):
        TraceDelay.model_validate({"model": "trace", "file": str(file)})


def test_packets_are_reordered_only_with_order_free() -> None:
    for order, overtaken in (("fifo", False), ("free", True)):
        model = UniformDelay.model_validate({"least": 0, "most": "1s", "order": order})
        line = Line(LinkSpec(jitter=model), KEY)
        times = [line.offer(n, 100, n, "data", 0.01 * n)[0][1] for n in range(100)]
        assert (times != sorted(times)) == overtaken


def test_random_numbers_are_keyed_by_packet_and_independent_of_other_packets() -> None:
    spec = LinkSpec(jitter=UniformDelay(least=0, most=1, order="free"), duplicate=0.3, corrupt=0.2)
    one, other = Line(spec, KEY), Line(spec, KEY)
    right = {n: [when for _, when in one.offer(n, 100, n, "data", 0.0)] for n in range(50)}
    for n in reversed(range(50)):
        other.offer(None, 100, None, "nack", 0.0)
        assert [when for _, when in other.offer(n, 100, n, "data", 0.0)] == right[n]
        # The second occurrence has other random numbers.
        other.offer(n, 100, n, "data", 0.0)
    assert other.corrupt > 0
    assert other.offered == 150


def test_duplicates_come_twice_and_are_counted() -> None:
    line = Line(LinkSpec(delay=0.5, duplicate=0.25), KEY)
    counts = [len(line.offer(n, 100, n, "data", 0.0)) for n in range(4000)]
    assert set(counts) == {1, 2}
    # Standard error sqrt(0.25 * 0.75 / 4000) = 0.007.
    assert counts.count(2) / 4000 == pytest.approx(0.25, abs=0.028)
    assert line.duplicated == counts.count(2)


def test_damaged_packets_are_dropped_and_counted_as_corrupt() -> None:
    line = Line(LinkSpec(corrupt=0.1), KEY)
    arrived = sum(len(line.offer(n, 100, n, "data", 0.0)) for n in range(4000))
    assert (line.corrupt, line.lost) == (4000 - arrived, 0)
    assert line.corrupt / 4000 == pytest.approx(0.1, abs=4 * sqrt(0.09 / 4000))


@pytest.mark.parametrize("size", [58, 958])
def test_wrong_bits_hit_large_packets_more_often(size: int) -> None:
    line = Line(LinkSpec(bit_errors=1e-5), KEY)
    for n in range(20_000):
        line.offer(n, size, n, "data", 0.0)
    right = 1 - (1 - 1e-5) ** (8 * (size + 42))
    assert line.corrupt / 20_000 == pytest.approx(right, abs=4 * sqrt(right / 20_000))


@pytest.mark.parametrize(("size", "frames"), [(1472, 1), (1473, 2), (2952, 2), (2953, 3), (62_000, 42), (65_507, 45)])
def test_fragments_are_counted_as_ip_does(size: int, frames: int) -> None:
    assert frames_of(size, 1500) == frames
    assert frames_of(size, None) == 1
    # With 1000 bytes, 976 fit into each but the last, and 980 into that.
    assert [frames_of(n, 1000) for n in (972, 973, 976 + 972, 976 + 973)] == [1, 2, 2, 3]
    # Every frame carries headers of its own: 42 bytes around the datagram, 34 around each fragment after the first.
    line = Line(LinkSpec(rate=1.0, mtu=1500), KEY)
    assert line.offer(None, size, None, "data", 0.0) == [(None, size + 42.0 + 34 * (frames - 1))]


def test_exact_framing_counts_every_byte_of_every_frame() -> None:
    for mtu, octets in ((None, 1538 + 84), (1500, 1538 + 84), (1000, 1034 + 563)):
        line = Line(LinkSpec(rate=1.0, overhead="ethernet", mtu=mtu), KEY)
        assert line.offer(None, 1473, None, "data", 0.0) == [(None, float(octets))]


def test_a_control_packet_in_several_fragments_passes_where_only_content_is_lost() -> None:
    line = Line(LinkSpec(loss=ContentLoss(p=0.5), mtu=600), KEY)
    assert all(line.offer(n, 5000, None, "nack", 0.0) for n in range(50))
    assert not all(line.offer(n, 5000, n, "data", 0.0) for n in range(50))


def test_a_datagram_in_one_frame_is_lost_with_an_mtu_as_without() -> None:
    plain, cut = (Line(LinkSpec(loss=Bernoulli(p=0.3), mtu=mtu), KEY) for mtu in (None, 1500))
    for n in range(500):
        assert plain.offer(n, 1400, n, "data", 0.0) == cut.offer(n, 1400, n, "data", 0.0)


def drops(*listed: dict[str, Any], member: int = 0) -> list[tuple[int | None, str]]:
    """Return the packets lost of content 0 to 5 with a NACK after each, followed by the same content again."""
    spec = LinkSpec(loss=Scripted(drops=tuple(Drop.model_validate(drop) for drop in listed)))
    line = Line(spec, KEY, member)
    talk: list[tuple[int | None, str]] = [packet for n in range(6) for packet in ((n, "data"), (None, "nack"))]
    talk += [(n, "data") for n in range(6)]
    return [what for what in talk if not line.offer(what, 100, *what, 0.0)]


def test_a_script_drops_what_it_lists() -> None:
    assert drops({"identity": 3}) == [(3, "data"), (3, "data")]
    assert drops({"identity": 3, "occurrence": 2}) == [(3, "data")]
    assert drops({"kind": "nack", "number": [2, 3]}) == [(None, "nack")] * 2
    assert drops({"kind": "data", "number": 1}, {"number": 6}) == [(0, "data"), (None, "nack")]
    assert drops({"kind": "nack"}) == [(None, "nack")] * 6
    assert drops({"identity": 0, "receiver": 2}) == []
    assert len(drops({"identity": 0, "receiver": 2}, member=1)) == 2


def test_a_line_has_the_deadline_of_its_queue() -> None:
    line = Line(LinkSpec(rate=100.0, delay=1.0, overhead=0, discipline=Codel(), loss=Recorded(runs=(1, 1))), KEY)
    assert list(line.offer("a", 100, 0, "data", 0.0)) == [("a", 2.0)]
    assert list(line.offer("b", 100, 1, "data", 0.0)) == []
    assert list(line.offer("c", 100, 2, "data", 0.5)) == []
    assert (line.deadline, line.waiting(0.5)) == (1.0, 2)
    # The second is lost after it occupied the transmitter.
    assert list(line.wake(1.0)) == []
    assert list(line.wake(line.deadline)) == [("c", 4.0)]
    assert (line.lost, line.dropped, line.deadline) == (1, 0, float("inf"))


def test_members_of_a_group_have_random_streams_of_their_own() -> None:
    spec = LinkSpec(jitter=UniformDelay(least=0, most=1))
    one, other = (Line(spec, extend(KEY, member), member) for member in (0, 1))
    assert one.offer(0, 100, 0, "data", 0.0) != other.offer(0, 100, 0, "data", 0.0)


def test_models_are_written_where_plain_values_are() -> None:
    written = {
        "delay": {"model": "uniform", "least": "1ms", "most": "2ms"},
        "queue": {"model": "red", "ecn": True},
        "duplicate": "1%",
        "mtu": "1500B",
        "down": {"loss": {"model": "gilbert-elliott", "burst": 2, "gap": 8}, "delay": "5ms"},
    }
    attributes = LinkAttributes.model_validate(written)
    down, up = attributes.specs()
    assert (down.delay, down.jitter, up.jitter) == (0.005, None, UniformDelay(least=0.001, most=0.002))
    assert (up.duplicate, up.mtu, up.plain, LinkSpec(delay=0.1, queue=4).plain) == (0.01, 1500, False, True)
    assert LinkAttributes.model_validate(attributes.model_dump()).specs() == (down, up)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ({"delay": {"model": "uniform", "least": "2ms", "most": "1ms"}}, "most 1ms is less than least 2ms"),
        ({"delay": {"model": "pareto", "least": "2ms", "mean": "1ms"}}, "mean 1ms is not more than least 2ms"),
        ({"delay": {"model": "gamma"}}, "does not match any of the expected tags: 'uniform'"),
        ({"queue": {"model": "fq"}}, "does not match any of the expected tags: 'droptail'"),
        ({"queue": {"model": "token-bucket"}}, "burst"),
        ({"mtu": 60}, "greater than or equal to 68"),
        ({"duplicate": "200%"}, "is not a fraction"),
    ],
)
def test_wrong_models_are_rejected(written: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        LinkAttributes.model_validate(written)

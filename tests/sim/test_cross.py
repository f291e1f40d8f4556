"""Cross traffic: how much each kind sends, and how the TCP-like one shares."""

from collections.abc import Callable
from math import inf, sqrt
from statistics import fmean, pvariance
from typing import Any

import pytest

from protocols.cross import (
    AimdSource,
    CrossCodec,
    FlowSink,
    Gaps,
    Load,
    PacedSource,
    Receipt,
    constant,
    is_cross,
    on_off,
    poisson,
)
from protocols.cross.messages import load_of, receipt_of
from protocols.errors import WireError
from protocols.machine import Machine, Ports
from protocols.rng import Rng
from sim.network import Network
from tests.sim.probes import Note
from topologies.generators import Dumbbell


def run(sources: list[Callable[[Ports, int], Machine]], seconds: float, **parts: Any) -> list[FlowSink]:
    """Flow n goes from x(n+1) to y(n+1) of a dumbbell."""
    network = Network(Dumbbell.model_validate({"receivers": 1, "pairs": len(sources), **parts}).build(), seed=3)
    sinks = []
    for number, make in enumerate(sources):
        far, near = network.host(f"y{number + 1}"), network.host(f"x{number + 1}")
        sinks.append(FlowSink(far, number, receipts=True))
        far.run(sinks[-1], lambda event: None)
        near.run(make(near, number), lambda event: None)
    network.run(until=seconds)
    return sinks


def paced(gaps: Gaps, end: float = inf) -> Callable[[Ports, int], Machine]:
    """A source of packets of 100 bytes."""
    return lambda ports, flow: PacedSource(ports, flow, f"y{flow + 1}", 100, gaps, 1.0, end)


def greedy(begin: float = 0.0) -> Callable[[Ports, int], Machine]:
    """A greedy source of packets of 958 bytes."""
    return lambda ports, flow: AimdSource(ports, flow, f"y{flow + 1}", 958, begin)


def test_a_constant_source_sends_at_equal_distances_from_begin_to_end() -> None:
    (sink,) = run([paced(constant(0.01), end=2.995)], 10.0)
    assert sink.received == 200


def draws(gaps: Gaps, count: int) -> list[float]:
    """Gaps of one stream."""
    gap = gaps(Rng(5))
    return [gap() for _ in range(count)]


def test_poisson_gaps_are_exponential() -> None:
    found = draws(poisson(0.01), 20_000)
    # Mean and standard deviation of an exponential are equal; standard errors 0.7 % and 1 %.
    assert fmean(found) == pytest.approx(0.01, rel=0.03)
    assert sqrt(pvariance(found)) == pytest.approx(0.01, rel=0.05)


def test_bursts_are_on_for_their_share_of_the_time() -> None:
    found = draws(on_off(0.01, 0.3, 0.7), 30_000)
    # A packet each 10 ms for 30 % of the time; about 1000 bursts and silences, standard error 3.5 %.
    assert fmean(found) == pytest.approx(0.01 / 0.3, rel=0.1)
    assert min(found) == pytest.approx(0.01)
    silences = [gap for gap in found if gap > 0.0101]
    assert len(silences) == pytest.approx(30_000 * 0.01 / 0.3, rel=0.15)


def test_a_greedy_flow_fills_an_empty_link() -> None:
    bottleneck = {"rate": "10Mbit", "delay": "10ms", "queue": 40}
    (sink,) = run([greedy()], 20.0, bottleneck=bottleneck)
    # 1000 bytes each on the link; the queue is more than the bandwidth times the delay, so it never runs dry.
    assert sink.received / 20 == pytest.approx(1250, rel=0.03)


def test_greedy_flows_share_fairly() -> None:
    bottleneck = {"rate": "10Mbit", "delay": "10ms", "queue": 40}
    sinks = run([greedy(0.1 * number) for number in range(4)], 40.0, bottleneck=bottleneck)
    rates = [sink.received for sink in sinks]
    jain = sum(rates) ** 2 / (4 * sum(rate**2 for rate in rates))
    assert sum(rates) / 40 == pytest.approx(1250, rel=0.03)
    assert jain > 0.9


@pytest.mark.parametrize("loss", [0.005, 0.02])
def test_throughput_follows_the_square_root_of_loss(loss: float) -> None:
    bottleneck = {"rate": "1Gbit", "delay": "50ms", "down": {"loss": loss}}
    sinks = run([greedy() for _ in range(4)], 60.0, bottleneck=bottleneck)
    # Mathis, Semke, Mahdavi, Ott (1997): sqrt(3 / 2) / (RTT sqrt(p)) with a receipt for every packet; theirs is for periodic
    # losses, and time-outs take some more at 2 %.
    expected = sqrt(1.5) / (0.1 * sqrt(loss))
    measured = fmean(sink.received for sink in sinks) / 60
    assert 0.75 * expected < measured < 1.1 * expected


@pytest.mark.parametrize("message", [load_of(3, 70_000, 8), load_of(0, 0, 1472), receipt_of(65_535, 2**32 - 1)])
def test_bytes_and_back(message: Load | Receipt) -> None:
    codec = CrossCodec()
    data = codec.encode(message)
    assert len(data) == (message.size if isinstance(message, Load) else 8)
    back = codec.decode(data)
    assert back == message
    assert is_cross(back)


def test_what_is_no_cross_traffic_is_refused() -> None:
    codec = CrossCodec()
    for data in (b"", b"\x00", b"\x10" * 40):
        with pytest.raises(WireError):
            codec.decode(data)
    with pytest.raises(WireError, match="cross traffic of 3 bytes; at least 8"):
        codec.decode(b"\xcb\0\0")
    assert not is_cross(Note(1))

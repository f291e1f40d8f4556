"""The equations of TCP's rate: recorded feedback of NRL NORM, the inverse, and where CUBIC is Reno."""

import pytest

from protocols.norm.congestion.equation import EQUATIONS, cubic_rate, loss_event_rate, tcp_rate
from protocols.norm.congestion.states import FLAG_LIMIT, FLAG_START, join_loss, split_loss
from protocols.norm.messages import Ack
from protocols.norm.quantise import rate_value, rtt_seconds
from protocols.norm.wire.codec import NormCodec
from tests.support.captures import udp_payloads


def test_the_rates_that_nrl_norm_reported_are_those_of_the_equation_or_limited_below() -> None:
    codec = NormCodec()
    limited: list[float] = []
    free: list[float] = []
    for payload in udp_payloads("cc_two_receivers"):
        message = codec.decode(payload)
        if not isinstance(message, Ack) or message.cc is None or message.cc.flags & FLAG_START:
            continue
        loss, rtt = join_loss(message.cc.loss, message.cc.loss_low), rtt_seconds(message.cc.rtt)
        ratio = rate_value(message.cc.rate) / tcp_rate(1.0, rtt, loss)
        (limited if message.cc.flags & FLAG_LIMIT else free).append(ratio)
    # The packet size: an average of segments of 800 bytes and of commands.
    assert len(free) == 1
    assert 700 < free[0] < 850
    assert len(limited) > 100
    assert max(limited) < 850


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("rate", [2e3, 1e5, 1e7, 1e9])
def test_the_inverse_gives_the_loss_with_which_the_equation_gives_the_rate(name: str, rate: float) -> None:
    equation = EQUATIONS[name]
    loss = loss_event_rate(equation, 1400, 0.05, rate)
    assert equation(1400, 0.05, loss) == pytest.approx(rate, rel=1e-6)


def test_a_rate_below_all_that_the_equation_gives_has_a_loss_event_for_each_packet() -> None:
    assert loss_event_rate(tcp_rate, 1400, 0.05, 1.0) == 1.0


def test_cubic_is_reno_where_windows_are_small_and_more_where_they_are_large() -> None:
    assert cubic_rate(1400, 0.01, 0.01) == tcp_rate(1400, 0.01, 0.01)
    # RFC 9438 5.1, table 1: at a loss rate of 1e-6 and 0.1 s, CUBIC has a mean window of 5928 segments (with C 0.4), Reno 1200.
    assert cubic_rate(1.0, 0.1, 1e-6) * 0.1 == pytest.approx(5928, rel=0.01)


@pytest.mark.parametrize("loss", [0.0, 1e-7, 0.01, 0.3, 1.0])
def test_a_loss_is_carried_with_32_bits(loss: float) -> None:
    high, low = split_loss(loss)
    assert join_loss(high, low) == pytest.approx(loss, abs=2**-32)
    assert high == pytest.approx(loss * 65535, abs=1.0)

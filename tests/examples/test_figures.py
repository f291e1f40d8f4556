"""The figures of the README: what they draw, without Mininet."""

from pathlib import Path

from examples import one_to_many


def test_multicast_keeps_its_rate_and_a_broker_divides_it(tmp_path: Path) -> None:
    found = one_to_many.table((1, 4), emulate=False)
    multicast, broker = (found["sim"][name] for name in [*one_to_many.SYSTEMS][:2])
    # 16 kB are 12 packets, of 94 and more bytes of headers each, on 10 Mbit/s.
    assert 8.7 < multicast[4] <= multicast[1] < 9.2
    assert abs(broker[1] / broker[4] - 4) < 4 * 0.06
    one_to_many.draw(found, tmp_path / "figure.svg")
    assert "FJM2" in (tmp_path / "figure.svg").read_text()

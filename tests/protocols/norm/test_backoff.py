"""The random back-off before feedback: its distribution, and the number of NACKs when a whole group loses the same packet."""

from heapq import heappop, heappush
from math import exp, inf, log, sqrt
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.content import pattern
from experiments.contract.recorder import Recorder
from protocols.norm.backoff import backoff
from protocols.norm.receiver import NormReceiver
from protocols.rng import Rng, key_of
from tests.protocols.norm.scenes import GROUP, GRTT, MessageBuilder, quick


def cdf(z: float, spread: float, group_size: float) -> float:
    """Return P(wait <= z) = (e^(lam z/T) - 1) / (e^lam - 1) with lam = ln G + 1 (RFC 5401 3.2.2)."""
    rate = log(group_size) + 1.0
    return (exp(rate * min(max(z / spread, 0.0), 1.0)) - 1.0) / (exp(rate) - 1.0)


@pytest.mark.parametrize("group_size", [1.0, 10.0, 500.0, 1e6])
def test_back_offs_follow_the_truncated_exponential_distribution(group_size: float) -> None:
    n, spread = 4000, 0.4
    rng = Rng(key_of(1, "backoff"))
    waits = sorted(backoff(rng.uniform(), spread, group_size) for _ in range(n))
    found = [cdf(wait, spread, group_size) for wait in waits]
    distance = max(max((i + 1) / n - p, p - i / n) for i, p in enumerate(found))
    # Kolmogorov-Smirnov: a distance above 1.95 / sqrt(n) has probability 0.001.
    assert distance < 1.95 / sqrt(n)


@settings(deadline=None, derandomize=True)
@given(u=st.floats(0.0, 1.0, exclude_max=True), spread=st.floats(1e-6, 1e3), group_size=st.floats(1.0, 5e8))
def test_a_back_off_lies_within_the_maximum(u: float, spread: float, group_size: float) -> None:
    assert 0.0 <= backoff(u, spread, group_size) <= spread * (1 + 1e-12)


@pytest.mark.parametrize("spread", [0.0, -1.0])
def test_without_a_maximum_the_back_off_is_zero(spread: float) -> None:
    assert backoff(0.999, spread, 1000.0) == 0.0


def test_larger_groups_have_longer_back_offs() -> None:
    waits = [backoff(0.5, 1.0, group_size) for group_size in (1.0, 10.0, 1000.0, 1e6)]
    assert waits == sorted(waits)
    assert len(set(waits)) == len(waits)


# -- a whole group -----------------------------------------------------------------------------------------------------


def expected_nacks(n: int, factor: int) -> float:
    """Return E[N] = n F(d) + e^(lam d/T) (1 - (1 - F(T - d))^n): n losses at once; NACKs arrive after d = GRTT / 2."""
    rate, delay = log(n) + 1.0, 0.5 / factor
    early, late = cdf(delay, 1.0, n), cdf(1.0 - delay, 1.0, n)
    return n * early + exp(rate * delay) * (1.0 - (1.0 - late) ** n)


def count_nacks(n: int, factor: int, seed: int) -> int:
    """Count the NACKs of `n` receivers that lose the same packet, when every NACK reaches all of them."""
    builder = MessageBuilder(pattern(300), block=2, gsize=n, backoff=factor)
    received = [builder.data(0, 0), builder.data(0, 1), builder.data(1, 0)]
    ports = [Recorder(seed * 1000 + i) for i in range(n)]
    machines = [NormReceiver(port, quick(), 10 + i, GROUP) for i, port in enumerate(ports)]
    for machine in machines:
        machine.start(0.0)
        machine.receive(received[0], "sender", GROUP, 0.0)
        machine.receive(received[2], "sender", GROUP, 0.0)
    happens = [(machine.deadline, i, -1) for i, machine in enumerate(machines)]
    happens.sort()
    while happens and happens[0][0] < 2 * factor * GRTT:
        now, i, nack = heappop(happens)
        if nack >= 0:
            for j, machine in enumerate(machines):
                if j != i:
                    machine.receive(ports[i].packets[nack].message, "other", GROUP, now)
        elif machines[i].deadline <= now:
            machines[i].wake(now)
            if ports[i].packets:
                heappush(happens, (now + GRTT / 2, i, 0))
    assert all(machine.deadline > 2 * factor * GRTT for machine in machines)
    counts = [machine.counts() for machine in machines]
    assert all(count["nacks_sent"] + count["nacks_suppressed"] == 1 for count in counts)
    return sum(count["nacks_sent"] for count in counts)


@pytest.mark.parametrize(("n", "factor", "tabled", "runs"), [(10, 4, 1.706, 1000), (10, 2, 2.763, 600), (100, 4, 2.39, 250)])
def test_the_number_of_nacks_agrees_with_theory(n: int, factor: int, tabled: float, runs: int) -> None:
    expected = expected_nacks(n, factor)
    assert expected == pytest.approx(tabled, rel=1e-3)
    found = [count_nacks(n, factor, seed) for seed in range(runs)]
    error = stdev(found) / sqrt(runs)
    # Four standard errors: about 0.15, 0.2 and 0.35.
    assert abs(fmean(found) - expected) < 4 * error, f"{fmean(found)} +- {error}, expected {expected}"


def test_a_back_off_of_zero_sends_at_once() -> None:
    builder = MessageBuilder(pattern(300), block=2, backoff=0)
    port = Recorder()
    machine = NormReceiver(port, quick(), 9, GROUP)
    received = [builder.data(0, 0), builder.data(0, 1), builder.data(1, 0)]
    machine.receive(received[0], "sender", GROUP, 0.0)
    machine.receive(received[2], "sender", GROUP, 0.0)
    assert port.kinds() == {"nack": 1}
    assert machine.deadline < inf

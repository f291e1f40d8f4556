"""Processor time of hosts: inputs and packets wait while a machine works, and waits are those of queueing theory."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log
from typing import Any, ClassVar

import pytest

from experiments.theory.links import md1_wait, md1k, mm1_wait, mm1k
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from protocols.rng import Rng
from sim.faults import Faults
from sim.host import SimHost
from sim.network import Network
from topologies.generators import Star

GROUP = Group("g")
SIZE = 1000


@dataclass(slots=True)
class Task(Message):
    """A packet with the time it was sent."""

    kind: ClassVar[str] = "task"
    sent: float


class Worker(Machine):
    """Works for every packet, and answers it when it is done."""

    __slots__ = ("answers", "service", "times", "wakes")

    def __init__(self, ports: Ports, service: Callable[[], float], answers: bool = False) -> None:
        super().__init__(ports)
        self.service = service
        self.answers = answers
        self.times: list[tuple[float, float]] = []
        """When each packet was sent, and when it was processed."""
        self.wakes: list[float] = []

    def start(self, now: float) -> None:
        self.ports.join(GROUP)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        assert isinstance(message, Task)
        self.times.append((message.sent, now))
        self.ports.work(self.service())
        if self.answers:
            self.ports.send(Packet(Task(now), SIZE, source))

    def wake_at(self, when: float, now: float) -> None:
        self._due(when)

    def wake(self, now: float) -> None:
        self.deadline = inf
        self.wakes.append(now)

    def counts(self) -> dict[str, int]:
        return {"received": len(self.times)}


class Source(Machine):
    """Sends packets at given times."""

    __slots__ = ("_next", "_times", "answers")

    def __init__(self, ports: Ports, times: Any) -> None:
        super().__init__(ports)
        self._times = iter(times)
        self.answers: list[float] = []
        self._next = inf

    def start(self, now: float) -> None:
        self._due(next(self._times))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        self.answers.append(now)

    def wake(self, now: float) -> None:
        self.ports.send(Packet(Task(now), SIZE, GROUP))
        self._due(next(self._times, inf))

    def counts(self) -> dict[str, int]:
        return {}


def network_with(model: dict[str, Any], engine: str = "fast", receivers: int = 1) -> Network:
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "nodes": {"r": model} if model else {}}).build()
    return Network(topology, seed=1, engine=engine)


def run(
    service: Callable[[], float],
    times: Any,
    model: dict[str, Any] | None = None,
    *,
    answers: bool = False,
    engine: str = "fast",
) -> tuple[Worker, Source, Network]:
    """Let `r1` work `service()` seconds for each packet that the sender sends at `times`."""
    network = network_with(model or {}, engine)
    host, sender = network.host("r1"), network.host("sender")
    worker, source = Worker(host, service, answers), Source(sender, times)
    host.run(worker, lambda event: None)
    sender.run(source, lambda event: None)
    network.run()
    return worker, source, network


@pytest.mark.parametrize("engine", ["strict", "fast"])
@pytest.mark.parametrize("model", [{}, {"cpu": "0s"}])
def test_the_next_input_and_what_is_sent_wait_for_the_work(engine: str, model: dict[str, Any]) -> None:
    worker, source, network = run(lambda: 2.0, [1.0, 1.5, 1.7, 9.0], model, answers=True, engine=engine)
    assert [done for _, done in worker.times] == [1.0, 3.0, 5.0, 9.0]
    assert source.answers == [3.0, 5.0, 7.0, 11.0]
    (counts,) = network.processors()
    assert (counts.host, counts.busy) == ("r1", 8.0)


@pytest.mark.parametrize("engine", ["strict", "fast"])
def test_receiving_working_and_sending_share_one_processor(engine: str) -> None:
    model = {"cpu": "100ms", "cpu_send": "500ms"}
    worker, source, _ = run(lambda: 2.0, [1.0, 1.5], model, answers=True, engine=engine)
    assert [done for _, done in worker.times] == pytest.approx([1.1, 3.7])
    assert source.answers == pytest.approx([3.6, 6.2])


def test_a_wake_up_waits_for_the_work() -> None:
    network = network_with({})
    host = network.host("r1")
    worker = Worker(host, lambda: 0.0)
    host.run(worker, lambda event: None)
    network.later(1.0, lambda: host.work(3.0))
    host.call(worker.wake_at, 2.0)
    network.run()
    assert worker.wakes == [4.0]


def test_costs_count_bytes_and_frames_of_what_is_received() -> None:
    # 1000 bytes are one frame.
    worker, _, _ = run(lambda: 0.0, [1.0], {"cpu": "1s", "cpu_byte": "1ms", "cpu_frame": "10s"})
    assert [done for _, done in worker.times] == pytest.approx([1.0 + 1.0 + 1.0 + 10.0])


def test_a_crash_drops_what_waits() -> None:
    network = network_with({})
    faults = Faults(network)
    host, sender = network.host("r1"), network.host("sender")
    worker, source = Worker(host, lambda: 2.0, answers=True), Source(sender, [1.0, 1.5])
    host.run(worker, lambda event: None)
    sender.run(source, lambda event: None)
    network.later(2.0, lambda: faults.crash("r1"))
    restarted = Worker(host, lambda: 0.0)

    def start_again(up: SimHost) -> None:
        up.run(restarted, lambda event: None)

    network.later(2.5, lambda: faults.restart("r1", start_again))
    network.run()
    assert [done for _, done in worker.times] == [1.0]
    assert not source.answers
    assert not restarted.times


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("begins_at", [0.0, 1.2])
def test_the_work_of_a_host_whose_clock_drifts_takes_as_long_as_that_of_others(factor: float, begins_at: float) -> None:
    network = network_with({})
    faults = Faults(network)
    host, sender = network.host("r1"), network.host("sender")
    worker, source = Worker(host, lambda: 0.5), Source(sender, [1.0, 1.1, 1.3, 1.4, 3.0])
    host.run(worker, lambda event: None)
    sender.run(source, lambda event: None)

    def drift() -> None:
        faults.drift("r1", factor)

    network.later(begins_at, drift)
    network.run()
    local = [done if done < begins_at else begins_at + factor * (done - begins_at) for done in (1.0, 1.5, 2.0, 2.5, 3.0)]
    assert [done for _, done in worker.times] == pytest.approx(local)


def poisson(rate: float, count: int, seed: int) -> list[float]:
    """Return arrival times."""
    rng, now, times = Rng(seed), 0.0, []
    for _ in range(count):
        now -= log(1.0 - rng.uniform()) / rate
        times.append(now)
    return times


def exponential(seed: int) -> Callable[[], float]:
    """Return a function that draws service times of mean 1 s."""
    rng = Rng(seed)
    return lambda: -log(1.0 - rng.uniform())


ARRIVALS = 40_000


@pytest.mark.parametrize(
    ("rho", "service", "expected"),
    [(0.5, exponential(7), mm1_wait(0.5)), (0.7, lambda: 1.0, md1_wait(0.7))],
    ids=["M/M/1", "M/D/1"],
)
def test_waits_for_a_machine_that_works_are_those_of_theory(rho: float, service: Callable[[], float], expected: float) -> None:
    """The standard error of the mean wait is about 0.02 (40,000 arrivals, busy periods of a few services); bound: 0.08."""
    worker, _, _ = run(service, poisson(rho, ARRIVALS, 3))
    waits = [done - sent for sent, done in worker.times]
    assert len(waits) == ARRIVALS
    assert sum(waits) / len(waits) == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize(
    ("works", "theory"), [(exponential(9), mm1k(0.8, 5)[0]), (lambda: 1.0, md1k(0.8, 5)[0])], ids=["mm1k", "md1k"]
)
def test_drops_before_a_machine_that_works_are_those_of_theory(works: Callable[[], float], theory: float) -> None:
    """Room for 5 with the one in service; standard error of the share about 0.002 (40,000 arrivals), bound 0.008."""
    worker, _, _ = run(works, poisson(0.8, ARRIVALS, 5), {"buffer": 4 * SIZE})
    assert 1 - len(worker.times) / ARRIVALS == pytest.approx(theory, abs=0.008)

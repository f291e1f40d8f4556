"""NORM's congestion control: the equation, the average loss interval, the codes of its fields, and feedback per round.

Feedback is that of real receivers to a sender that does nothing but probe: with equal rates and no round-trip time confirmed,
all of them begin a back-off with each probe.
"""

from collections.abc import Mapping

from experiments.validation.references import Families, Measured, Reference, mean_of
from experiments.validation.testbed import PassiveListener, StarTestbed, ignore
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from protocols.norm.config import NormConfig
from protocols.norm.congestion.equation import tcp_rate
from protocols.norm.congestion.loss_history import mean_interval
from protocols.norm.messages import Ack, Origin, Probe
from protocols.norm.quantise import gsize_code, rate_code, rate_value, rtt_code, rtt_seconds
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.wire.sizes import size_of
from protocols.rng import key_of
from sim.network import Network

__all__ = ["FAMILIES", "feedback_counts"]

GROUP = Group("validation")
FACTOR = 4
"""The back-off factor of the sender; feedback is spread over twice as many GRTT."""
SPACING = 20
"""GRTT between two probes: the last feedback and the hold-off behind it are over by then."""
ROUNDS = 2000
DELIVERIES = 4e6
"""Budget of packet deliveries at full effort; large groups have fewer rounds, with a larger standard error."""


class _ProbingSender(Machine):
    """Sends CMD(CC) at even intervals, and nothing else."""

    __slots__ = ("_interval", "_left", "_origin", "_sequence")

    def __init__(self, ports: Ports, origin: Origin, interval: float, count: int) -> None:
        super().__init__(ports)
        self._origin, self._interval, self._left, self._sequence = origin, interval, count, 0

    def start(self, now: float) -> None:
        """Send the first probe."""
        self._due(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Ignore all messages."""

    def wake(self, now: float) -> None:
        """Send a probe, which receivers answer by feedback."""
        self._sequence += 1
        microseconds = round(now * 1e6) + 1
        probe = Probe(self._origin, self._sequence, self._sequence, *divmod(microseconds, 1_000_000), rate_code(1e6))
        self.ports.send(Packet(probe, size_of(probe), GROUP))
        self.deadline = now + self._interval if self._sequence < self._left else float("inf")

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


def feedback_counts(receivers: int, delay: float, rtt: float, rounds: int, seed: int) -> list[float]:
    """Return the feedback messages to each of so many probes; `delay` between two receivers is in GRTT, `rtt` in seconds."""
    grtt = rtt_seconds(rtt_code(rtt))
    star = StarTestbed(receivers, delay=delay * grtt / 2, trunk=max(1.0 - delay, 0.0) * grtt / 2)
    network = Network(star.build(), seed=seed)
    config = NormConfig(congestion="norm", backoff=FACTOR, gsize=receivers)
    for number in range(1, receivers + 1):
        host = network.host(f"r{number}")
        host.run(NormBatchReceiver(host, config, 1 + number, GROUP), ignore)
    ear = network.host("ear")
    listener = PassiveListener(ear, GROUP, lambda message: isinstance(message, (Ack, Probe)))
    ear.run(listener, ignore)
    sender = network.host("sender")
    origin = Origin(1, 1, rtt_code(rtt), FACTOR, gsize_code(receivers))
    sender.run(_ProbingSender(sender, origin, SPACING * grtt, rounds), ignore)
    network.run((rounds + 1) * SPACING * grtt)
    counts: list[float] = []
    for _, message in listener.received:
        if isinstance(message, Probe):
            counts.append(0.0)
        else:
            counts[-1] += 1.0
    return counts


def _feedback(reference: Reference, effort: float) -> Mapping[str, Measured]:
    params = reference.params
    rounds = int(max(effort * min(ROUNDS, DELIVERIES / (params["G"] * (1 + reference.values["value"]))), 8))
    seed = key_of(1, reference.id) % 2**32
    return {"value": mean_of(feedback_counts(params["G"], params["d_over_GRTT"], params["rtt"], rounds, seed))}


def _equation(reference: Reference, effort: float) -> Mapping[str, Measured]:
    params = reference.params
    rate = tcp_rate(params["s"], params["R"], params["p"])
    values = {"bytes_per_s": rate, "bit_per_s": 8.0 * rate, "packets_per_rtt": rate * params["R"] / params["s"]}
    return {name: Measured(value) for name, value in values.items() if name in reference.values}


def _interval(reference: Reference, effort: float) -> Mapping[str, Measured]:
    present, *closed = reference.params["intervals"]
    mean = mean_interval(present, closed, [1.0] * len(closed))
    return {"mean_interval": Measured(mean), "p": Measured(1.0 / mean)}


def _codes(reference: Reference, effort: float) -> Mapping[str, Measured]:
    params = reference.params
    if "rtt" in params:
        code = rtt_code(params["rtt"])
        return {"q": Measured(code), "decoded": Measured(rtt_seconds(code))}
    field = rate_code(params["rate_bytes_per_s"])
    return {"field": Measured(field), "decoded": Measured(rate_value(field))}


FAMILIES: Families = {
    "cc_feedback_count": _feedback,
    "norm_quantise": _codes,
    "tfrc_eq": _equation,
    "wali": _interval,
}

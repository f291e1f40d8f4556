"""Closed forms for links: queues, Ethernet framing, and channels with memory.

Queueing results are in units of the mean service time unless a docstring names seconds.
"""

from math import exp, factorial

__all__ = [
    "ethernet_goodput",
    "ethernet_wire_bytes",
    "fragments",
    "gilbert_elliott",
    "implosion",
    "md1_wait",
    "md1k",
    "mm1_wait",
    "mm1k",
]

PREAMBLE_FCS_GAP = 38
"""Bytes an Ethernet frame adds to its payload: preamble 8, header 14, frame check sequence 4, inter-packet gap 12."""
LEAST_PAYLOAD = 46
IPV4, UDP = 20, 8


def fragments(payload: int, mtu: int = 1500) -> list[int]:
    """Return the IP lengths in bytes of the frames that carry one UDP datagram of `payload` bytes.

    Fragments other than the last carry a multiple of 8 bytes (RFC 791).
    """
    left, room, found = payload + UDP, (mtu - IPV4) // 8 * 8, []
    while left > mtu - IPV4:
        found.append(room + IPV4)
        left -= room
    return [*found, left + IPV4]


def ethernet_wire_bytes(payload: int, *, tagged: bool = False, mtu: int = 1500) -> int:
    """Return the byte times one UDP datagram occupies on Ethernet (IEEE 802.3).

    Each frame takes max(46, IP length + 4 if 802.1Q-tagged) + 38 byte times.
    """
    return sum(max(LEAST_PAYLOAD, length + 4 * tagged) + PREAMBLE_FCS_GAP for length in fragments(payload, mtu))


def ethernet_goodput(payload: int, rate: float, *, tagged: bool = False, mtu: int = 1500) -> float:
    """Return the largest UDP payload rate over Ethernet, in the unit of `rate`."""
    return rate * payload / ethernet_wire_bytes(payload, tagged=tagged, mtu=mtu)


def implosion(frames: int, queue: int, service: float) -> tuple[int, float]:
    """Return (dropped frames, seconds until the last accepted frame is sent) for frames that arrive at a port simultaneously.

    `queue` frames can wait behind the one in service; each takes `service` seconds.
    """
    return max(0, frames - queue - 1), min(frames, queue + 1) * service


def mm1_wait(rho: float) -> float:
    """Return the mean waiting time in an M/M/1 queue: rho/(1 - rho)."""
    return rho / (1.0 - rho)


def md1_wait(rho: float) -> float:
    """Return the mean waiting time in an M/D/1 queue: rho/(2 (1 - rho)) (Pollaczek-Khinchine formula)."""
    return rho / (2.0 * (1.0 - rho))


def mm1k(rho: float, room: int) -> tuple[float, float]:
    """Return (drop probability, mean number in system) of an M/M/1/K queue; `room` is K and counts the packet in service."""
    weights = [rho**n for n in range(room + 1)]
    total = sum(weights)
    return weights[-1] / total, sum(n * w for n, w in enumerate(weights)) / total


def md1k(rho: float, room: int) -> tuple[float, float, float]:
    """Return (drop probability, mean number in system, mean wait of accepted packets) of an M/D/1/K queue; `room` is K.

    Solves the Markov chain embedded at departures, with a_j = e^-rho rho^j/j! arrivals during a service, by forward recursion
    from the empty state; P_K = 1 - 1/(pi_0 + rho).
    """
    arrivals = [exp(-rho) * rho**j / factorial(j) for j in range(room + 1)]
    chain = [1.0]
    for n in range(room - 1):
        rest = sum(chain[i] * arrivals[n - i + 1] for i in range(1, n + 1))
        chain.append((chain[n] - chain[0] * arrivals[n] - rest) / arrivals[0])
    total = sum(chain)
    left = [weight / total for weight in chain]
    drop = 1.0 - 1.0 / (left[0] + rho)
    number = sum(n * weight for n, weight in enumerate(left)) / (left[0] + rho) + room * drop
    return drop, number, number / (rho * (1.0 - drop)) - 1.0


def gilbert_elliott(p: float, r: float, bad: float = 1.0, good: float = 0.0) -> tuple[float, float, float]:
    """Return (loss rate, mean burst length, mean gap length) of a Gilbert-Elliott channel (Gilbert 1960, Elliott 1963).

    `p` is the transition probability from good to bad, `r` from bad to good; `bad` and `good` are the loss probabilities in the
    two states. With L the loss rate and P11 the probability that two consecutive packets are lost, the mean burst is L/(L -
    P11) and the mean gap is (1 - L)/(L - P11) packets.
    """
    share = p / (p + r)
    loss = share * bad + (1.0 - share) * good
    both = loss * loss + share * (1.0 - share) * (bad - good) ** 2 * (1.0 - p - r)
    return loss, loss / (loss - both), (1.0 - loss) / (loss - both)

"""Closed forms of links: queues, Ethernet framing, channels with memory. Times are in services if not in seconds."""

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
"""Bytes around the payload of an Ethernet frame: preamble 8, header 14, check 4, gap 12."""
LEAST_PAYLOAD = 46
IPV4, UDP = 20, 8


def fragments(payload: int, mtu: int = 1500) -> list[int]:
    """IP lengths of the frames of one UDP datagram of `payload` bytes (RFC 791: fragments carry multiples of 8 bytes)."""
    left, room, found = payload + UDP, (mtu - IPV4) // 8 * 8, []
    while left > mtu - IPV4:
        found.append(room + IPV4)
        left -= room
    return [*found, left + IPV4]


def ethernet_wire_bytes(payload: int, *, tagged: bool = False, mtu: int = 1500) -> int:
    """Byte times a UDP datagram takes on Ethernet (IEEE 802.3): per frame max(46, IP length and 802.1Q tag of 4) + 38."""
    return sum(max(LEAST_PAYLOAD, length + 4 * tagged) + PREAMBLE_FCS_GAP for length in fragments(payload, mtu))


def ethernet_goodput(payload: int, rate: float, *, tagged: bool = False, mtu: int = 1500) -> float:
    """The most UDP payload per second, in the unit of `rate`."""
    return rate * payload / ethernet_wire_bytes(payload, tagged=tagged, mtu=mtu)


def implosion(frames: int, queue: int, service: float) -> tuple[int, float]:
    """Of frames that reach a port at one instant: how many are dropped, and when the last of the others is sent.

    `queue` wait behind the one in service, which takes `service` seconds.
    """
    return max(0, frames - queue - 1), min(frames, queue + 1) * service


def mm1_wait(rho: float) -> float:
    """Mean wait in an M/M/1 queue: rho/(1 - rho)."""
    return rho / (1.0 - rho)


def md1_wait(rho: float) -> float:
    """Mean wait in an M/D/1 queue: rho/(2 (1 - rho)) (Pollaczek and Khinchine)."""
    return rho / (2.0 * (1.0 - rho))


def mm1k(rho: float, room: int) -> tuple[float, float]:
    """Drop probability and mean number in an M/M/1/K queue; `room` K counts the packet in service."""
    weights = [rho**n for n in range(room + 1)]
    total = sum(weights)
    return weights[-1] / total, sum(n * w for n, w in enumerate(weights)) / total


def md1k(rho: float, room: int) -> tuple[float, float, float]:
    """Drop probability, mean number, mean wait of what is accepted in an M/D/1/K queue.

    From the chain at departures, a_j = e^-rho rho^j/j!, found upwards from the empty queue; P_K = 1 - 1/(pi_0 + rho).
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
    """Loss rate, mean length of a burst of losses, mean length of a gap (Gilbert 1960, Elliott 1963).

    `p` from the good to the bad state, `r` back; loss `bad` and `good` in them. With L the loss rate and P11 the chance that
    two packets in a row are lost, a burst is L/(L - P11) and a gap (1 - L)/(L - P11).
    """
    share = p / (p + r)
    loss = share * bad + (1.0 - share) * good
    both = loss * loss + share * (1.0 - share) * (bad - good) ** 2 * (1.0 - p - r)
    return loss, loss / (loss - both), (1.0 - loss) / (loss - both)

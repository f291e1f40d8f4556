"""Closed forms for reliable multicast, with which measurements are compared.

Losses are independent with probability `p` per packet and receiver, less than 1 (ValueError) where a sum has no end;
`receivers` is R; a block has `k` source packets and `parity` repair packets. Results are per packet unless stated otherwise.
`tests/vectors/reference.json` holds values computed independently, and tests compare these functions with them.
`experiments.theory.links` has queues, links and Ethernet.
"""

from collections.abc import Callable, Iterator, Mapping
from math import comb, exp, expm1, inf, lgamma, log, log1p

__all__ = [
    "arq_rounds",
    "backoff_cdf",
    "backoff_quantile",
    "block_failure",
    "first_nack",
    "first_pass",
    "integrated",
    "layered",
    "nacks",
    "nacks_approximate",
    "nacks_independent",
    "repetition",
    "residual_loss",
    "srm_first_request",
    "srm_requests",
    "tkp_counts",
    "tkp_times",
]

MANY = 1000
"""Packets from which on binomial coefficients are computed by logarithms, because they may exceed the range of numbers."""
NEGLIGIBLE = 1e-13
"""Term at which an infinite sum is truncated."""


def _tail(p: float, probability: Callable[[int], float]) -> float:
    """Return sum over m >= 0 of P(M > m), for losses of `p`, truncated at the first term of at most NEGLIGIBLE.

    `probability` is called with 0, 1, 2 and so on. ValueError for a `p` at which the terms do not decrease.
    """
    if not 0.0 <= p < 1.0:
        raise ValueError(f"losses of {p} have no expected number of transmissions")
    total, m = 0.0, 0
    while (term := probability(m)) > NEGLIGIBLE or m < 2:
        total += term
        m += 1
    return total


def _at_least_one(chance: float, trials: float) -> float:
    """Return 1 - (1 - chance)**trials without cancellation."""
    return 1.0 if chance >= 1.0 else -expm1(trials * log1p(-chance))


def _arrivals(k: int, n: int, p: float) -> list[float]:
    """Return P(i of n packets arrive) for each i from 0 to k - 1."""
    q = 1.0 - p
    if n < MANY:
        return [comb(n, i) * q**i * p ** (n - i) for i in range(k)]
    if p in (0.0, 1.0):
        return [float(i == n * q) for i in range(k)]
    ways = [lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) for i in range(k)]
    return [exp(way + i * log1p(-p) + (n - i) * log(p)) for i, way in enumerate(ways)]


def _fewer_than(k: int, n: int, p: float) -> float:
    """Return P(fewer than k of n packets arrive)."""
    return min(sum(_arrivals(k, n, p)), 1.0)


def _fewer_than_of_more(k: int, n: int, p: float) -> Iterator[float]:
    """Yield P(fewer than k of n packets arrive), then that of n + 1, of n + 2 and so on."""
    q = 1.0 - p
    arrived = _arrivals(k, n, p)
    while True:
        yield sum(arrived)
        arrived = [p * same + q * fewer for same, fewer in zip(arrived, [0.0, *arrived], strict=False)]


# -- suppression of NACKs ----------------------------------------------------------------------------------------------


def backoff_cdf(z: float, spread: float, group: float) -> float:
    """Return P(back-off <= z) = (e^(lam z/T) - 1)/(e^lam - 1), with lam = ln G + 1 and T = `spread` (RFC 5401 3.2.2)."""
    lam = log(group) + 1.0
    return min(max(expm1(lam * z / spread) / expm1(lam), 0.0), 1.0)


def backoff_quantile(u: float, spread: float, group: float) -> float:
    """Return the back-off quantile (T/lam) ln(1 + u (e^lam - 1)) of a probability `u`; T is `spread` (RFC 5401 3.2.2)."""
    lam = log(group) + 1.0
    return spread / lam * log1p(u * expm1(lam))


def nacks(group: float, factor: float, delay: float, losers: int) -> float:
    """Return the expected number of NACKs for one loss that `losers` of a group of size `group` detect simultaneously.

    n F(d) + e^(lam d/T) [1 - (1 - F(T - d))^n], with T = `factor` and d = `delay` between receivers, both in GRTT (RFC 5401
    3.2.2; Nonnenmacher and Biersack 1999). The first term counts NACKs sent before any other could arrive; the second counts
    those whose timer expires within d of the first.
    """
    lam = log(group) + 1.0
    before = losers * backoff_cdf(delay, factor, group)
    return before + exp(lam * delay / factor) * _at_least_one(backoff_cdf(factor - delay, factor, group), losers)


def nacks_independent(group: float, factor: float, delay: float, receivers: int, p: float) -> float:
    """Return the expected NACKs per packet that some receiver loses, with independent losses of probability p.

    In round m the number of losers is Bin(R, p^m); the mean of `nacks` over them is R q F(d) + e^(lam d/T) [1 - (1 - q F(T -
    d))^R] with q = p^m. Rounds are summed and divided by the probability that at least one receiver loses the packet.
    """
    lam = log(group) + 1.0
    before, after = backoff_cdf(delay, factor, group), backoff_cdf(factor - delay, factor, group)

    def of_round(m: int) -> float:
        q = p**m
        return receivers * q * before + exp(lam * delay / factor) * _at_least_one(q * after, receivers)

    return _tail(p, lambda m: of_round(m + 1)) / _at_least_one(p, receivers)


def nacks_approximate(group: float, factor: float, *, unicast: bool = False) -> float:
    """Return the approximation exp(1.2 lam/(2 K)) of RFC 5401, or exp(1.2 lam/K) of NRL for unicast NACKs.

    It is off by up to 40 %.
    """
    return exp(1.2 * (log(group) + 1.0) / (factor if unicast else 2.0 * factor))


def first_nack(group: float, factor: float, losers: int, steps: int = 20_000) -> float:
    """Return the mean time from loss to first NACK in GRTT: the integral of (1 - F)^n over [0, T] by Simpson's rule.

    The substitution F = e^-y makes the integrand smooth whatever the group and the number of losers; `steps` is even.
    """
    lam = log(group) + 1.0
    top = expm1(lam)
    # Behind this y the integrand is negligible.
    width = log(max(top, losers, 1.0)) + 40.0

    def at(y: float) -> float:
        u = exp(-y)
        return (-expm1(-y)) ** losers * u * top / (lam * (1.0 + u * top))

    inner = sum((4 if i % 2 else 2) * at(width * i / steps) for i in range(1, steps))
    return factor * width * (at(0.0) + inner + at(width)) / (3.0 * steps)


# -- repetition and coding ---------------------------------------------------------------------------------------------


def repetition(receivers: int, p: float, shared: float = 0.0) -> float:
    """Return the expected transmissions until all receivers have a packet: sum over m of 1 - (1 - p^m)^R.

    Source: Nonnenmacher, Biersack, Towsley 1998. A loss `shared` by all receivers divides by 1 - shared (Wald's equation).
    """
    return _tail(p, lambda m: _at_least_one(p**m, receivers)) / (1.0 - shared)


def arq_rounds(receivers: int, p: float, k: int) -> float:
    """Return the expected rounds until all receivers have k packets, if each round repeats the missing ones.

    The first transmission counts as a round. Equals `repetition` of one packet to R k receivers.
    """
    return repetition(receivers * k, p)


def integrated(receivers: int, p: float, k: int, proactive: int = 0, shared: float = 0.0) -> float:
    """Return the transmissions per source packet with unlimited parity on demand (Nonnenmacher, Biersack, Towsley 1998).

    (k + a + sum over m of P(L > m))/k with P(L <= m) = P(Bin(k + a + m, 1 - p) >= k)^R; a is `proactive`, and `shared` as in
    `repetition`.
    """
    short = _fewer_than_of_more(k, k + proactive, p)
    extra = _tail(p, lambda _: _at_least_one(next(short), receivers))
    return (k + proactive + extra) / k / (1.0 - shared)


def block_failure(k: int, n: int, p: float) -> float:
    """Return P(a receiver gets fewer than k of the n packets of a block)."""
    return _fewer_than(k, n, p)


def residual_loss(k: int, n: int, p: float) -> float:
    """Return P(a source packet is lost and its block is not decodable) = p P(Bin(n - 1, p) > n - k - 1)."""
    return p * _fewer_than(k, n - 1, p)


def layered(receivers: int, p: float, k: int, n: int) -> float:
    """Return the transmissions per source packet with an (n, k) code below repetition: n/k `repetition`(residual loss)."""
    return n / k * repetition(receivers, residual_loss(k, n, p))


def first_pass(receivers: int, p: float, k: int, n: int) -> tuple[float, float]:
    """Return ((k + E[min(L, n - k)])/k, P(some receiver cannot decode)) with n - k parity packets on demand."""
    extra = sum(_at_least_one(_fewer_than(k, k + m, p), receivers) for m in range(n - k))
    return (k + extra) / k, _at_least_one(_fewer_than(k, n, p), receivers)


# -- sender- against receiver-initiated --------------------------------------------------------------------------------


def tkp_counts(receivers: int, p: float) -> tuple[float, float, float]:
    """Return per packet the ACKs of protocol A, NACKs of N1, NACKs of N2 (Towsley, Kurose, Pingali 1997).

    R E[M](1 - p), R p/(1 - p) and E[M] - 1.
    """
    sent = repetition(receivers, p)
    return receivers * sent * (1 - p), receivers * p / (1 - p), sent - 1.0


def tkp_times(receivers: int, p: float, costs: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return (sender, receiver) processing times per packet of A, N1 and N2 (Towsley, Kurose, Pingali 1997).

    `costs` maps the symbols of the paper to seconds: data Xp, Yp; ACK Xa, Ya; NACK Xn, Yn; timer Xt, Yt; X at the sender, Y at
    a receiver.
    """
    sent = repetition(receivers, p)
    xp, xa, xn, xt = (costs[key] for key in ("Xp", "Xa", "Xn", "Xt"))
    yp, ya, yn, yt = (costs[key] for key in ("Yp", "Ya", "Yn", "Yt"))
    came, again = sent * (1 - p), p * p / (1 - p) * yt
    overheard = (sent - 1) * (yn / receivers + (receivers - 1) / receivers * xn)
    return {
        "A": (sent * xp + (sent - 1) * xt + receivers * came * xa, came * (yp + ya)),
        "N1": (sent * xp + receivers * p / (1 - p) * xn, came * yp + p / (1 - p) * yn + again),
        "N2": (sent * xp + (sent - 1) * xn, came * yp + overheard + again),
    }


# -- SRM ---------------------------------------------------------------------------------------------------------------


def srm_requests(members: int, c2: float) -> float:
    """Return the expected requests in a star if all members but the source miss a packet and C1 = 0 (Floyd et al. 1997).

    n D/W + 1 - (D/W)^n, at most n. The hub is at distance 1 from every member, so members are D = 2 apart, and request timers
    are uniform over W = 2 C2.
    """
    n = members - 1
    share = 1.0 / c2 if c2 else inf
    return float(n) if share >= 1.0 else n * share + 1.0 - share**n


def srm_first_request(members: int, c2: float) -> float:
    """Return the mean time from loss detection to the first request: W/(n + 1)."""
    return 2.0 * c2 / members

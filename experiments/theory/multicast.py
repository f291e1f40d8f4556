"""Closed forms of reliable multicast: what the laboratory is compared with.

Losses are independent with probability `p` per packet and receiver; `receivers` is R, `k` source packets of a block have
`parity` more. Results are per packet unless they say otherwise. The values in `tests/vectors/reference.json` were computed
elsewhere, and the tests hold these functions to them. Queues, links and Ethernet are in `experiments.theory.links`.
"""

from collections.abc import Callable, Mapping
from math import comb, exp, expm1, inf, log, log1p

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

ENOUGH = 1e-13


def _tail(probability: Callable[[int], float]) -> float:
    """The sum over m >= 0 of P(M > m), until it does not matter any more."""
    total, m = 0.0, 0
    while (term := probability(m)) > ENOUGH or m < 2:
        total += term
        m += 1
    return total


def _none_of(chance: float, trials: float) -> float:
    """1 - (1 - chance)**trials without cancellation."""
    return 1.0 if chance >= 1.0 else -expm1(trials * log1p(-chance))


def _below(k: int, n: int, p: float) -> float:
    """P(fewer than k of n packets come)."""
    q = 1.0 - p
    return sum(comb(n, i) * q**i * p ** (n - i) for i in range(k))


# -- suppression of NACKs ----------------------------------------------------------------------------------------------


def backoff_cdf(z: float, spread: float, group: float) -> float:
    """P(back-off <= z): (e^(lam z/T) - 1)/(e^lam - 1), lam = ln G + 1, T = `spread` (RFC 5401 3.2.2)."""
    lam = log(group) + 1.0
    return min(max(expm1(lam * z / spread) / expm1(lam), 0.0), 1.0)


def backoff_quantile(u: float, spread: float, group: float) -> float:
    """The back-off below which a fraction u lies: (T/lam) ln(1 + u (e^lam - 1)) (RFC 5401 3.2.2)."""
    lam = log(group) + 1.0
    return spread / lam * log1p(u * expm1(lam))


def nacks(group: float, factor: float, delay: float, losers: int) -> float:
    """NACKs for one loss that `losers` of a group see at the same moment; `delay` between them in GRTT.

    n F(d) + e^(lam d/T) [1 - (1 - F(T - d))^n] with T = `factor` GRTT (RFC 5401 3.2.2, Nonnenmacher and Biersack 1999): n F(d)
    speak before they could have heard anybody, of the others those whose time comes within d of the first.
    """
    lam = log(group) + 1.0
    before = losers * backoff_cdf(delay, factor, group)
    return before + exp(lam * delay / factor) * _none_of(backoff_cdf(factor - delay, factor, group), losers)


def nacks_independent(group: float, factor: float, delay: float, receivers: int, p: float) -> float:
    """NACKs for one packet that somebody loses, when each of `receivers` loses each transmission of it with probability p.

    In round m the losers are Bin(R, p^m); the mean of `nacks` over them is R q F(d) + e^(lam d/T) [1 - (1 - q F(T - d))^R] with
    q = p^m. Rounds are summed, and divided by the probability that somebody loses the packet.
    """
    lam = log(group) + 1.0
    before, after = backoff_cdf(delay, factor, group), backoff_cdf(factor - delay, factor, group)

    def of_round(m: int) -> float:
        q = p**m
        return receivers * q * before + exp(lam * delay / factor) * _none_of(q * after, receivers)

    return _tail(lambda m: of_round(m + 1)) / _none_of(p, receivers)


def nacks_approximate(group: float, factor: float, *, unicast: bool = False) -> float:
    """The approximation exp(1.2 lam / (2 K)) of RFC 5401, for unicast NACKs exp(1.2 lam / K) of NRL; up to 40 % off."""
    return exp(1.2 * (log(group) + 1.0) / (factor if unicast else 2.0 * factor))


def first_nack(group: float, factor: float, losers: int, steps: int = 20_000) -> float:
    """Time from the loss to the first NACK, in GRTT: the integral of (1 - F)^n over [0, T], by Simpson's rule.

    The variable is x = e^(lam z / T), in which F is a straight line: the integrand falls fast where x is small.
    """
    lam = log(group) + 1.0
    top = expm1(lam)

    def at(s: float) -> float:
        u = s * s
        return (1.0 - u) ** losers * 2.0 * s * top / (lam * (1.0 + u * top))

    inner = sum((4 if i % 2 else 2) * at(i / steps) for i in range(1, steps))
    return factor * (at(0.0) + inner + at(1.0)) / (3.0 * steps)


# -- repetition and coding ---------------------------------------------------------------------------------------------


def repetition(receivers: int, p: float, shared: float = 0.0) -> float:
    """Transmissions until all have a packet: sum over m of 1 - (1 - p^m)^R (Nonnenmacher, Biersack, Towsley 1998).

    A `shared` loss before all of them divides by 1 - shared (Wald).
    """
    return _tail(lambda m: _none_of(p**m, receivers)) / (1.0 - shared)


def arq_rounds(receivers: int, p: float, k: int) -> float:
    """Rounds, the first included, until all have k packets, when each round repeats what is missing: R k receivers of one."""
    return repetition(receivers * k, p)


def integrated(receivers: int, p: float, k: int, proactive: int = 0, shared: float = 0.0) -> float:
    """Transmissions per source packet with unlimited parity on demand (Nonnenmacher, Biersack, Towsley 1998).

    (k + a + sum over m of P(L > m))/k with P(L <= m) = P(Bin(k + a + m, 1 - p) >= k)^R; `shared` as in `repetition`.
    """
    extra = _tail(lambda m: _none_of(_below(k, k + proactive + m, p), receivers))
    return (k + proactive + extra) / k / (1.0 - shared)


def block_failure(k: int, n: int, p: float) -> float:
    """P(a receiver gets fewer than k of the n packets of a block)."""
    return _below(k, n, p)


def residual_loss(k: int, n: int, p: float) -> float:
    """P(a source packet is lost and its block can't be decoded): p P(Bin(n - 1, p) > n - k - 1)."""
    return p * _below(k, n - 1, p)


def layered(receivers: int, p: float, k: int, n: int) -> float:
    """Transmissions per source packet with a (n, k) code below repetition: n/k times `repetition` of the residual loss."""
    return n / k * repetition(receivers, residual_loss(k, n, p))


def first_pass(receivers: int, p: float, k: int, n: int) -> tuple[float, float]:
    """With n - k parity packets on demand: (k + E[min(L, n - k)])/k, and P(some receiver still can't decode)."""
    extra = sum(_none_of(_below(k, k + m, p), receivers) for m in range(n - k))
    return (k + extra) / k, _none_of(_below(k, n, p), receivers)


# -- sender- against receiver-initiated --------------------------------------------------------------------------------


def tkp_counts(receivers: int, p: float) -> tuple[float, float, float]:
    """ACKs of A, NACKs of N1, NACKs of N2 per packet: R E[M](1 - p), R p/(1 - p), E[M] - 1 (Towsley, Kurose, Pingali 1997)."""
    sent = repetition(receivers, p)
    return receivers * sent * (1 - p), receivers * p / (1 - p), sent - 1.0


def tkp_times(receivers: int, p: float, costs: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Processing times (sender, receiver) per packet of A, N1 and N2 (Towsley, Kurose, Pingali 1997).

    `costs` of data X_p, Y_p, ACK X_a, Y_a, NACK X_n, Y_n and timer X_t, Y_t, X at the sender and Y at a receiver.
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
    """Requests in a star when all but the source miss a packet, C1 = 0: n D/W + 1 - (D/W)^n, n at the most (Floyd et al. 1997).

    The hub is 1 from everybody: members are D = 2 apart, and timers uniform over W = 2 C2.
    """
    n = members - 1
    share = 1.0 / c2 if c2 else inf
    return float(n) if share >= 1.0 else n * share + 1.0 - share**n


def srm_first_request(members: int, c2: float) -> float:
    """When the first of these requests is sent, after the loss is seen: W/(n + 1)."""
    return 2.0 * c2 / members

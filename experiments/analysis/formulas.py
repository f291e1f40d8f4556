"""Registry of closed forms: the metric each predicts, the scenario values it needs, and when it applies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from experiments.scenario.suggestion import one_of
from experiments.sweep.spec.quantities import number_of
from experiments.theory import multicast as theory
from experiments.theory.links import ethernet_goodput
from protocols.errors import UsageError
from protocols.norm.quantise import gsize_code, gsize_value, rtt_code, rtt_seconds

__all__ = ["FORMULAS", "Formula", "FormulaRequest", "parse_formula"]

HEADER = 32
"""Bytes of a NORM data packet before the segment: common header and FEC payload id, without FTI."""

RECEIVERS = ("topology.receivers", "topology.leaves")
LOSS = ("topology.link.down.loss", "topology.loss")
SHARED = ("topology.trunk.down.loss",)
LINK_DELAY = ("topology.link.up.delay",)


@dataclass(frozen=True, slots=True)
class Formula:
    """A prediction of the mean of `metric`, or, if `ceiling`, of its upper bound.

    `needs` maps each argument of `value` to scenario keys; the first key present in a point gives the argument. Arguments in
    `optional` are 0 if no key is present. `applies` decides from a point's scenario; the conditions in `assumes` are not
    checked.
    """

    metric: str
    about: str
    source: str
    assumes: str
    needs: Mapping[str, tuple[str, ...]]
    value: Callable[..., float]
    applies: Callable[[Mapping[str, Any]], bool]
    ceiling: bool = False
    optional: tuple[str, ...] = ()


def _nacks(receivers: float, gsize: float, backoff: float, grtt: float, link_delay: float) -> float:
    advertised = rtt_seconds(rtt_code(grtt))
    return theory.nacks(gsize_value(gsize_code(int(gsize))), backoff, 2 * link_delay / advertised, int(receivers))


def _nacks_independent(receivers: float, loss: float, gsize: float, backoff: float, grtt: float, link_delay: float) -> float:
    advertised = rtt_seconds(rtt_code(grtt))
    delay = 2 * link_delay / advertised
    return theory.nacks_independent(gsize_value(gsize_code(int(gsize))), backoff, delay, int(receivers), loss)


def _nacks_approximate(gsize: float, backoff: float) -> float:
    return theory.nacks_approximate(gsize_value(gsize_code(int(gsize))), backoff)


def _repetition(receivers: float, loss: float, shared: float) -> float:
    return theory.repetition(int(receivers), loss, shared)


def _blocks(size: float, segment: float, block: float) -> tuple[tuple[int, int], ...]:
    """Return (block length, number of such blocks) of a file, divided as evenly as possible (RFC 5052 9.1)."""
    symbols = ceil(size / segment)
    blocks = ceil(symbols / block)
    large = symbols % blocks
    return tuple((k, count) for k, count in ((symbols // blocks + 1, large), (symbols // blocks, blocks - large)) if count)


def _integrated(
    receivers: float, loss: float, block: float, size: float, segment: float, proactive: float, shared: float
) -> float:
    parts = _blocks(size, segment, block)
    sent = sum(count * k * theory.integrated(int(receivers), loss, k, int(proactive), shared) for k, count in parts)
    return sent / sum(count * k for k, count in parts)


def _incomplete(loss: float, block: float, proactive: float, size: float, segment: float) -> float:
    decoded = 1.0
    for k, count in _blocks(size, segment, block):
        decoded *= (1.0 - theory.block_failure(k, k + int(proactive), loss)) ** count
    return 1.0 - decoded


def _protocol(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda point: point.get("protocol.name") in names


def _without_parity(point: Mapping[str, Any]) -> bool:
    return not point.get("protocol.parity")


def _with_parity(point: Mapping[str, Any]) -> bool:
    return bool(point.get("protocol.parity"))


def _shared_loss(point: Mapping[str, Any]) -> bool:
    return point.get("protocol.name") == "norm" and not any(point.get(key) for key in LOSS)


def _own_loss(point: Mapping[str, Any]) -> bool:
    return point.get("protocol.name") == "norm" and any(point.get(key) for key in LOSS)


def _one_mac(point: Mapping[str, Any]) -> bool:
    return _mac(point, "single") and point.get("topology.nodes.router.duplex") == "half"


def _two_macs(point: Mapping[str, Any]) -> bool:
    return _mac(point, "dual")


def _mac(point: Mapping[str, Any], kind: str) -> bool:
    return point.get("topology.nodes.router.mac") == kind


def _tkp_nacks(protocol: int) -> Callable[..., float]:
    def value(receivers: float, loss: float) -> float:
        return theory.tkp_counts(int(receivers), loss)[protocol]

    return value


def _tkp_throughput(protocol: str) -> Callable[..., float]:
    costs = dict.fromkeys(("Xp", "Xa", "Xn", "Yp", "Ya", "Yn"), 1.0) | {"Xt": 0.0, "Yt": 0.0}

    def value(receivers: float, loss: float) -> float:
        return 1.0 / max(theory.tkp_times(int(receivers), loss, costs)[protocol])

    return value


def _router(halves: int) -> Callable[..., float]:
    def value(segment: float, rate: float) -> float:
        sent = int(segment) + HEADER
        return 1e-6 * ethernet_goodput(sent, rate, tagged=halves > 1) * segment / sent / halves

    return value


INDEPENDENT = "losses are independent between receivers with equal probability, and feedback is never lost"
RFC5401 = "RFC 5401 3.2.2; Nonnenmacher and Biersack 1999"
NBT = "Nonnenmacher, Biersack, Towsley 1998"
TKP = "Towsley, Kurose, Pingali 1997"
SUPPRESSION = {"gsize": ("protocol.gsize",), "backoff": ("protocol.backoff",)}
MANY: Mapping[str, tuple[str, ...]] = {"receivers": RECEIVERS, "loss": LOSS}
CODED = {"block": ("protocol.block",), "size": ("workload.0.size",), "segment": ("protocol.segment",)}
ROUTED = {"segment": ("protocol.segment",), "rate": ("topology.nodes.router.rate", "topology.rate")}

FORMULAS: dict[str, Formula] = {
    "nacks": Formula(
        "requests_per_loss",
        "NACKs for a loss that all receivers detect simultaneously",
        RFC5401,
        "the loss is on the trunk, GRTT is fixed (probing: none), losses are far apart, no parity",
        {"receivers": RECEIVERS, **SUPPRESSION, "grtt": ("protocol.grtt",), "link_delay": LINK_DELAY},
        _nacks,
        _shared_loss,
    ),
    "nacks-independent": Formula(
        "requests_per_loss",
        "NACKs for a packet that receivers lose independently",
        RFC5401,
        "only content is lost, on receivers' links; GRTT is fixed (probing: none), losses are far apart, no parity",
        {**MANY, **SUPPRESSION, "grtt": ("protocol.grtt",), "link_delay": LINK_DELAY},
        _nacks_independent,
        _own_loss,
    ),
    "nacks-rfc5401": Formula(
        "requests_per_loss",
        "the RFC's approximation exp(1.2 (ln G + 1)/(2K))",
        RFC5401,
        "as many losers as the group size, half a GRTT apart; up to 40 % off",
        SUPPRESSION,
        _nacks_approximate,
        _protocol("norm"),
    ),
    "arq": Formula(
        "transmissions",
        "transmissions per packet until all receivers have it",
        NBT,
        INDEPENDENT + "; no parity",
        {**MANY, "shared": SHARED},
        _repetition,
        _without_parity,
        optional=("shared",),
    ),
    "fec": Formula(
        "transmissions",
        "transmissions per packet with unlimited parity on demand",
        NBT,
        INDEPENDENT + "; one file, enough parity for every block",
        {**MANY, **CODED, "proactive": ("protocol.auto_parity",), "shared": SHARED},
        _integrated,
        _with_parity,
        optional=("proactive", "shared"),
    ),
    "residual": Formula(
        "incomplete",
        "fraction of receivers that cannot decode a file from its first transmission",
        NBT,
        "one file, no repairs on demand, losses are independent between receivers",
        {"loss": LOSS, **CODED, "proactive": ("protocol.auto_parity",)},
        _incomplete,
        _protocol("norm"),
        optional=("proactive",),
    ),
    "a-feedback": Formula(
        "feedback_per_packet", "ACKs per packet of protocol A", TKP, INDEPENDENT, MANY, _tkp_nacks(0), _protocol("a")
    ),
    "n1-feedback": Formula(
        "feedback_per_packet", "NACKs per packet of protocol N1", TKP, INDEPENDENT, MANY, _tkp_nacks(1), _protocol("n1")
    ),
    "n2-feedback": Formula(
        "feedback_per_packet",
        "NACKs per packet of protocol N2",
        TKP,
        INDEPENDENT + "; NACK suppression is ideal",
        MANY,
        _tkp_nacks(2),
        _protocol("n2"),
    ),
    **{
        f"{name.lower()}-throughput": Formula(
            "processing_throughput",
            f"throughput of protocol {name} when processors are the bottleneck, in packets a processor handles",
            TKP,
            INDEPENDENT + "; timers are long compared with delays; every packet costs sender and receiver the same time",
            MANY,
            _tkp_throughput(name),
            _protocol(name.lower()),
        )
        for name in ("A", "N1", "N2")
    },
    "single-mac": Formula(
        "goodput_mbit_s",
        "goodput through a router with one half-duplex Ethernet MAC that carries every frame twice",
        "IEEE 802.3, 802.1Q",
        "the router is the bottleneck and frames it with VLAN tags",
        ROUTED,
        _router(2),
        _one_mac,
        ceiling=True,
    ),
    "dual-mac": Formula(
        "goodput_mbit_s",
        "goodput through a router with an Ethernet MAC on each side",
        "IEEE 802.3",
        "the router's links are the bottleneck",
        ROUTED,
        _router(1),
        _two_macs,
        ceiling=True,
    ),
}
"""Formulas by the name used in `--theory` and in the key `theory` of a sweep file."""


@dataclass(frozen=True, slots=True)
class FormulaRequest:
    """A formula by name, with arguments the user set: a number, or the scenario key to take it from."""

    name: str
    given: Mapping[str, float | str]

    @property
    def formula(self) -> Formula:
        """The registered formula."""
        return FORMULAS[self.name]


def parse_formula(text: str) -> FormulaRequest:
    """Parse `NAME` or `NAME:argument=value,...`; UsageError for an unknown name or argument."""
    name, _, rest = text.partition(":")
    if name not in FORMULAS:
        raise UsageError(f"--theory: value {name!r} is not allowed; {one_of(name, FORMULAS)}")
    given: dict[str, float | str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key not in FORMULAS[name].needs:
            allowed = ", ".join(FORMULAS[name].needs)
            raise UsageError(
                f"--theory: value {item!r} is not allowed; {name} takes argument=number or argument=key of {allowed}"
            )
        given[key] = _number(value)
    return FormulaRequest(name, given)


def _number(text: str) -> float | str:
    """Return a number, or a quantity in the units of stored parameters; other text is the key of one."""
    value = number_of(text.strip())
    return value if isinstance(value, str) else float(value)

"""Parameters of a NORM session, with the defaults of NRL NORM where it has one."""

from dataclasses import dataclass

from protocols.errors import ConfigError
from protocols.fec import MOST_SYMBOLS
from protocols.settings import check, setting

__all__ = ["NormConfig"]


@dataclass(frozen=True, slots=True)
class NormConfig:
    """One sender's parameters; a receiver learns most of them from the sender's messages."""

    rate: float = setting(
        125_000.0, "rate", 1.0, 1e12, help="transmission rate, UDP payload bytes per second", source="RFC 5740 5.2"
    )
    segment: int = setting(1400, "bytes", 8, 65_000, help="payload of one DATA message", source="RFC 5740 5.1.1")
    block: int = setting(64, "count", 1, 65_535, help="source symbols per FEC block", source="RFC 5052 9.1")
    parity: int = setting(16, "count", 0, 65_534, help="parity symbols per FEC block", source="RFC 5510 8")
    auto_parity: int = setting(
        0, "count", 0, 65_534, help="parity symbols sent with every block", source="RFC 5740 5.2", at_most="parity"
    )
    fec: int = setting(
        5, "choice", choices=(0, 2, 5, 129), help="fec_id: no-code, RS GF(2^m), RS GF(2^8), small block", source="RFC 5445"
    )
    fec_m: int = setting(
        8,
        "choice",
        choices=(8, 16),
        help="m of fec 2, bits: with 16 a block may have more than 255 symbols",
        source="RFC 5510 8",
    )
    grtt: float = setting(
        0.25,
        "seconds",
        1e-3,
        1000.0,
        help="initial estimate of the group round-trip time",
        source="RFC 5740 5.5.1",
        at_most="grtt_max",
    )
    grtt_max: float = setting(
        10.0,
        "seconds",
        1e-3,
        1000.0,
        help="bound of the advertised GRTT, unless packets are further apart",
        source="RFC 5740 5.5.1",
    )
    probing: str = setting(
        "active",
        "choice",
        choices=("active", "passive", "none"),
        help="GRTT probes: answered at once, with NACKs only, none",
        source="RFC 5740 5.5.1",
    )
    probe_min: float = setting(
        1.0,
        "seconds",
        1e-3,
        1e6,
        help="shortest GRTT probe interval after the first",
        source="RFC 5740 5.5.1",
        at_most="probe_max",
    )
    probe_max: float = setting(30.0, "seconds", 1e-3, 1e6, help="longest GRTT probe interval", source="RFC 5740 5.5.1")
    backoff: int = setting(4, "count", 0, 15, help="backoff factor K: NACKs spread over K * GRTT", source="RFC 5401 3.2.2")
    gsize: int = setting(1000, "count", 1, 500_000_000, help="estimate of the group size", source="RFC 5401 3.2.2")
    robust: int = setting(
        20, "count", 0, 1000, help="how often FLUSH and the like are repeated; 0: no FLUSH", source="RFC 5740 4.2.3.1"
    )
    cache_min: int = setting(
        8, "count", 1, 32_767, help="objects always kept for repair", source="RFC 5740 5.1", at_most="cache_max"
    )
    cache_max: int = setting(256, "count", 1, 32_767, help="objects kept for repair at the most", source="RFC 5740 5.1")
    cache_size: int = setting(
        20_000_000, "bytes", 0, help="bytes of objects kept for repair beyond cache_min", source="RFC 5740 5.1"
    )
    flow: float = setting(
        2.0, "number", 0.1, 1000.0, help="what was sent or requested in the last flow*(K+1)*GRTT is not purged", source="NRL"
    )
    repair: str = setting(
        "gathered",
        "choice",
        choices=("gathered", "immediate", "immediate-once"),
        help="repairs: for the NACKs of a while together, for each NACK at once, for each but not what waits already",
        source="RFC 5740 5.4; FJM2",
    )
    cache_age: float = setting(0.0, "seconds", 0.0, help="age from which on an object is not repaired any more; 0: none")
    fti: str = setting(
        "always",
        "choice",
        choices=("always", "info", "preset"),
        help="where objects are described: in DATA and INFO, only in the INFO of each, nowhere (see preset_size)",
        source="RFC 5740 4.2.1",
    )
    preset_size: int = setting(
        0, "bytes", 0, (1 << 48) - 1, help="size of every object that no FTI describes; 0: there are none", source="NRL"
    )
    nacking: str = setting(
        "normal",
        "choice",
        choices=("normal", "info", "none"),
        help="receiver: what it requests; all it misses, only NORM_INFO, nothing",
        source="NRL",
    )
    repair_boundary: str = setting(
        "block",
        "choice",
        choices=("block", "object"),
        help="receiver: it looks for losses behind each block, or only behind each object",
        source="NRL",
    )
    rx_robust: int = setting(
        20,
        "count",
        1,
        1000,
        help="receiver: activity periods (2 robust GRTT, at least 1 s) without a message until a sender is silent",
        source="RFC 5740 5.3",
    )
    window: int = setting(
        256, "count", 1, 16_384, help="receiver: objects pending per sender at the most", source="RFC 5740 5.3"
    )
    expire: float = setting(
        0.0, "seconds", 0.0, help="receiver: age at which incomplete objects are given up, a silent sender's at once; 0: never"
    )
    senders: int = setting(
        1024, "count", 1, 1_000_000, help="receiver: senders remembered at the most, new and silent ones forgotten first"
    )
    repair_share: float = setting(
        1.0,
        "number",
        0.01,
        1.0,
        help="share of the rate for repairs, and for those one address requests, while new content waits; 1: no limit",
    )
    join: str = setting(
        "beginning",
        "choice",
        choices=("beginning", "middle", "end", "all"),
        help="receiver: where in an object it joins a sender; end: also at FLUSH, for its object; all: and for those before",
        source="RFC 5740 5.3",
    )
    feedback: str = setting(
        "multicast",
        "choice",
        choices=("multicast", "unicast", "none"),
        help="receiver: NACKs and ACKs go to the group, to the sender alone, or are not sent: it completes by automatic parity",
        source="RFC 5740 5.3",
    )
    silent_delay: int = setting(
        8,
        "count",
        0,
        16_383,
        help="receiver with feedback none: objects, or blocks of a stream, that may begin before what is missing is given up",
        source="NRL",
    )
    buffer: int = setting(16_000_000, "bytes", 0, help="receiver: bytes of parity kept for decoding", source="RFC 5740 5.3")
    congestion: str = setting(
        "none",
        "choice",
        choices=("none", "norm", "loss-tolerant", "ecn"),
        help="congestion control: by loss, by loss but not of single packets, by loss and marks; set it at all nodes",
        source="RFC 5740 5.5.2",
    )
    fair_to: str = setting(
        "reno",
        "choice",
        choices=("reno", "cubic"),
        help="the TCP whose rate congestion control has at the same loss: as the RFC says, or that of today's systems",
        source="RFC 5348 3.1, RFC 9438 5.1",
    )
    rate_min: float = setting(
        0.0,
        "rate",
        0.0,
        1e12,
        help="lowest rate with congestion control; 0: a segment per second",
        source="RFC 5740 5.5.2",
        at_most="rate_max",
    )
    rate_max: float = setting(
        1e12, "rate", 1.0, 1e12, help="highest rate with congestion control, in place of `rate`", source="RFC 5740 5.5.2"
    )
    key_file: str = setting("", "file", help="file of group keys by which every message is authenticated", source="RFC 6584 5")

    def __post_init__(self) -> None:
        check(self)
        if self.fec_m == 16 and self.fec != 2:
            raise ConfigError(f"fec_m: 16 is not allowed; 8 with fec {self.fec}")
        most = MOST_SYMBOLS[self.fec_m]
        if self.block + self.parity > most:
            # The larger one, which leaves the other no room.
            key, other = ("parity", "block") if self.parity > self.block else ("block", "parity")
            hint = "" if self.fec_m == 16 else f"; {MOST_SYMBOLS[16]} with fec 2 and fec_m 16"
            allowed = f"block + parity is at most {most} ({other} is {getattr(self, other)}){hint}"
            raise ConfigError(f"{key}: {getattr(self, key)!r} is not allowed; {allowed}")
        if self.fec_m == 16 and self.parity and self.segment & 1:
            raise ConfigError(f"segment: {self.segment!r} is not allowed; an even number with fec_m 16")
        if self.fec == 0 and self.parity:
            raise ConfigError(f"parity: {self.parity!r} is not allowed; 0 with fec 0, which has no parity")
        if (self.fti == "preset") and not self.preset_size:
            raise ConfigError("preset_size: 0 is not allowed; the size of every object with fti preset")
        if self.congestion != "none" and self.probing != "active":
            raise ConfigError(f"probing: {self.probing!r} is not allowed; active with congestion {self.congestion!r}")

"""Parameters of the ARQ baselines: what all three have, and what only protocols with NACKs have."""

from dataclasses import dataclass

from protocols.settings import check, setting

__all__ = ["AConfig", "N1Config", "N2Config"]

TKP = "Towsley, Kurose, Pingali 1997"


@dataclass(frozen=True, slots=True)
class AConfig:
    """The sender-initiated protocol A: every packet is acknowledged by every receiver."""

    rate: float = setting(125_000.0, "rate", 1.0, 1e12, help="transmission rate, UDP payload bytes per second")
    segment: int = setting(1400, "bytes", 1, 60_000, help="content bytes of one DATA message")
    timeout: float = setting(
        0.25, "seconds", 1e-4, 1e6, help="a packet not acknowledged, or a request not served, by then is repeated", source=TKP
    )
    robust: int = setting(20, "count", 1, 1000, help="repetitions without any answer before giving up")
    keep: int = setting(256, "count", 1, 32_768, help="objects kept for repair")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class N1Config(AConfig):
    """The receiver-initiated protocol N1: NACKs go to the sender alone, at once."""

    gather: float = setting(
        0.02, "seconds", 0.0, 1e6, help="how long the sender waits for further requests before it repeats a packet"
    )
    hold: float = setting(0.05, "seconds", 0.0, 1e6, help="requests for a packet are ignored for so long after it was repeated")


@dataclass(frozen=True, slots=True)
class N2Config(N1Config):
    """The receiver-initiated protocol N2: NACKs go to all, after a random wait, and silence others."""

    window: float = setting(0.05, "seconds", 0.0, 1e6, help="NACKs wait a uniform random time up to this", source=TKP)

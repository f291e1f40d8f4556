"""Parameters of the ARQ protocols A, N1 and N2."""

from dataclasses import dataclass

from protocols.settings import check, setting

__all__ = ["AConfig", "N1Config", "N2Config"]

TKP = "Towsley, Kurose, Pingali 1997"


@dataclass(frozen=True, slots=True)
class AConfig:
    """The sender-initiated protocol A: every receiver acknowledges every packet. Its parameters are common to all."""

    rate: float = setting(125_000.0, "rate", 1.0, 1e12, help="transmission rate, UDP payload bytes per second")
    segment: int = setting(1400, "bytes", 1, 60_000, help="content bytes per DATA message")
    timeout: float = setting(
        0.25, "seconds", 1e-4, 1e6, help="time after which an unacknowledged packet or an unserved NACK is repeated", source=TKP
    )
    robust: int = setting(
        20, "count", 1, 1000, help="repetitions without an answer after which the sender or the receiver gives up"
    )
    keep: int = setting(256, "count", 1, 32_768, help="number of most recent objects the sender keeps for repair")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class N1Config(AConfig):
    """The receiver-initiated protocol N1: NACKs are sent at once, by unicast to the sender."""

    gather: float = setting(
        0.02, "seconds", 0.0, 1e6, help="time the sender waits for further NACKs before it repeats a packet"
    )
    hold: float = setting(0.05, "seconds", 0.0, 1e6, help="time after a repair during which NACKs for the packet are ignored")


@dataclass(frozen=True, slots=True)
class N2Config(N1Config):
    """The receiver-initiated protocol N2: NACKs are multicast after a random back-off and suppress those of other receivers."""

    window: float = setting(
        0.05, "seconds", 0.0, 1e6, help="upper bound of the uniform random back-off before a NACK", source=TKP
    )

"""Parameters of FJM2: those of NORM with other defaults, and those of queues, pools and delivery."""

from dataclasses import Field, dataclass, field
from typing import Any

from protocols.errors import ConfigError
from protocols.norm.config import NormConfig
from protocols.settings import setting, setting_of

__all__ = ["Fjm2Config"]

THESIS = "FJM2 (thesis)"
_NORM: dict[str, "Field[Any]"] = NormConfig.__dataclass_fields__


def _usual(name: str, default: Any) -> Any:
    """Return a parameter of NORM with another default."""
    return field(default=default, metadata={"setting": setting_of(_NORM[name])})


@dataclass(frozen=True, slots=True)
class Fjm2Config(NormConfig):
    """Parameters of a node; a message is one object of NORM. A message names its topic, so all topics share a group."""

    rate: float = _usual("rate", 12_500_000.0)
    grtt: float = _usual("grtt", 0.02)
    # A subscriber that gets no processor for a while looks far away. FLUSH, and what waits for the oldest messages to leave the
    # cache, take a multiple of this.
    grtt_max: float = _usual("grtt_max", 0.5)
    parity: int = _usual("parity", 0)
    fec: int = _usual("fec", 0)
    cache_max: int = _usual("cache_max", 10_000)
    window: int = _usual("window", 10_000)
    queue: int = setting(
        1000, "count", 1, 1_000_000, help="publisher: messages of each priority that wait to be sent at the most", source=THESIS
    )
    scheduling: str = setting(
        "strict",
        "choice",
        choices=("strict", "weighted"),
        help="publisher: the highest priority first; or each its share, of priority p in proportion to p + 1",
        source=THESIS,
    )
    pool: int = setting(
        16_000_000,
        "bytes",
        1,
        1 << 40,
        help="bytes of the containers of messages, at a publisher and at a subscriber",
        source=THESIS,
    )
    pooling: bool = setting(
        True,
        "choice",
        choices=(True, False),
        help="containers are used again; false: new memory for every message, which is what the thesis compares pools with",
        source=THESIS,
    )
    allocate: float = setting(
        0.0,
        "seconds",
        0.0,
        1.0,
        help="publisher: processor time of new memory, for a byte of a container (`python -m benchmarks.pools` measures it)",
        source=THESIS,
    )
    order: str = setting(
        "none",
        "choice",
        choices=("none", "fifo"),
        help="subscriber: as messages become complete; or those of a publisher, topic and priority as they were published",
        source="JMS 1.1 4.4.10",
    )
    max_wait: float = setting(
        0.0, "seconds", 0.0, help="publisher: longest wait for a full queue or pool before a program gets an error; 0: no limit"
    )
    braking: bool = setting(
        True,
        "choice",
        choices=(True, False),
        help="publisher: slow down as a tunnel asks for (its `brake`), unless congestion control sets the rate",
    )
    tunnel_key_file: str = setting(
        "", "file", help="publisher: file of keys of the site's tunnel, without one of which nothing that it asks for counts"
    )

    encode: float = setting(
        0.0,
        "seconds",
        0.0,
        1.0,
        help="publisher: processor time of its coder for a byte of a symbol, a source symbol and a parity symbol of a block",
        source=f"{THESIS}, table of 4.3.1",
    )
    encode_matrix: float = setting(
        0.0,
        "seconds",
        0.0,
        1.0,
        help="publisher: processor time of its coder for a pair of source symbols and a parity symbol of a block",
        source=f"{THESIS}, table of 4.3.1",
    )

    tos: bool = setting(
        False,
        "choice",
        choices=(False, True),
        help="publisher: the priority of a message chooses the DSCP of its packets (RFC 2474)",
        source=THESIS,
    )

    def __post_init__(self) -> None:
        NormConfig.__post_init__(self)
        for name, only, why in (
            ("fti", "always", "a subscriber may begin with any message"),
            ("nacking", "normal", "messages have no NORM_INFO"),
        ):
            if getattr(self, name) != only:
                raise ConfigError(f"{name}: {getattr(self, name)!r} is not allowed; {only}, since {why}")

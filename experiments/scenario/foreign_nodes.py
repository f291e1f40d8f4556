"""Choose the programs of emulated hosts: mcastlab's own, NRL's NORM library, or a command."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from protocols.errors import ConfigError
from protocols.fec import MOST_SYMBOLS

__all__ = ["FOREIGN", "OURS", "NodeChoice", "check_nodes"]

OURS, FOREIGN = "mcastlab", "nrl-norm"

Command: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]


class NodeChoice(BaseModel):
    """The program of a host; the workload says whether it sends or receives."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: Literal["mcastlab", "nrl-norm"] | Command = Field(
        default="mcastlab",
        description="mcastlab: the protocol of the scenario; nrl-norm: NRL's NORM library; or a command as a list of strings",
    )

    @property
    def foreign(self) -> bool:
        """Whether it is a program other than mcastlab's."""
        return self.run != OURS

    @property
    def command(self) -> tuple[str, ...]:
        """The words of a command; empty for a program known by name."""
        return self.run if isinstance(self.run, tuple) else ()


def check_nodes(chosen: dict[str, NodeChoice], protocol: str, config: Any) -> None:
    """ConfigError if NRL's library is chosen and does not implement the protocol or the FEC scheme of the scenario."""
    for name, choice in chosen.items():
        if choice.run != FOREIGN:
            continue
        refused = f"nodes.{name}.run: value {FOREIGN!r} is not allowed"
        if protocol != "norm":
            raise ConfigError(f"{refused}; it speaks norm, and the protocol is {protocol}")
        if config.fec == 0:
            raise ConfigError(f"{refused}; it needs fec 2, 5 or 129, and here is {config.fec}")
        if config.fec_m == 16 and config.block + config.parity <= MOST_SYMBOLS[8]:
            raise ConfigError(f"{refused}; it has fec_m 16 only where block + parity is more than {MOST_SYMBOLS[8]}")

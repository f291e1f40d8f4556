"""Protocols by name. A new protocol is one folder and one line in `_load`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protocols.errors import ConfigError
from protocols.machine import Codec, Group, Machine, Ports, Sender

__all__ = ["Protocol", "names", "protocol"]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What hosts and experiments need to run a protocol.

    `config` is a frozen dataclass whose fields carry `metadata` (see `protocols.settings`). `node` is the 32-bit id of the
    node within the protocol; `instance` tells one start of a sender from the next. All machines of a run share `group`.
    """

    name: str
    config: type
    codec: Callable[[], Codec]
    make_sender: Callable[[Ports, Any, int, Group, int], Sender]
    make_receiver: Callable[[Ports, Any, int, Group], Machine]
    ordered: bool = False
    """Does it promise that the objects of a sender are received in the order of their ids?"""


def _load() -> dict[str, Protocol]:
    from protocols import arq, norm, srm

    return {"norm": norm.PROTOCOL, "a": arq.A, "n1": arq.N1, "n2": arq.N2, "srm": srm.PROTOCOL}


def names() -> list[str]:
    """Every protocol name, sorted."""
    return sorted(_load())


def protocol(name: str) -> Protocol:
    """The protocol called `name`; ConfigError when there is none."""
    known = _load()
    if name not in known:
        raise ConfigError(f"protocol: {name!r} is unknown; allowed: {', '.join(sorted(known))}")
    return known[name]

"""Registrations and renewals of tunnels as JSON.

A value that is not allowed raises WireError, whose text names key, value and what is allowed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from protocols.admin.node import Node
from protocols.errors import WireError

__all__ = [
    "LONGEST_ADDRESS",
    "LONGEST_COUNTER",
    "LONGEST_GROUP",
    "LONGEST_NAME",
    "LARGEST_ID",
    "LARGEST_PORT",
    "LARGEST_STAMP",
    "MOST_COUNTERS",
    "Registration",
    "Renewal",
    "encoded",
    "nodes_of",
    "plain_node",
    "read_number",
    "registration_of",
    "renewal_of",
]

LONGEST_NAME: Final = 200
LONGEST_ADDRESS: Final = 100
LONGEST_GROUP: Final = 100
LONGEST_COUNTER: Final = 40
"""Characters."""
MOST_COUNTERS: Final = 512
"""Numbers in a renewal."""
LARGEST_ID: Final = 0xFFFFFFFF
LARGEST_PORT: Final = 0xFFFF
LARGEST_STAMP: Final = (1 << 53) - 1
"""The largest integer that every reader of JSON keeps exactly."""
_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Registration:
    """Registration of a tunnel; an empty `address` stands for that of the request.

    Advertisements go to the port `udp`; None: to `port`.
    """

    name: str
    site: int
    port: int
    group: str
    address: str = ""
    udp: int | None = None

    def plain(self) -> dict[str, Any]:
        """Return it for JSON; what has its default is left out."""
        told: dict[str, Any] = {"name": self.name, "site": self.site, "port": self.port, "group": self.group}
        if self.address:
            told["address"] = self.address
        return told if self.udp is None else told | {"udp": self.udp}


@dataclass(frozen=True, slots=True)
class Renewal:
    """A tunnel that stays in the list: its counters, its processor time in seconds, and its memory in bytes."""

    counters: Mapping[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    memory: int = 0

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"counters": dict(self.counters), "cpu": self.cpu, "memory": self.memory}


def encoded(plain: Mapping[str, Any]) -> bytes:
    """Return an object as JSON."""
    return json.dumps(plain, separators=(",", ":")).encode()


def registration_of(plain: object) -> Registration:
    """Read a registration."""
    values = _object(plain, ("name", "site", "port", "group", "address", "udp"))
    udp = values.get("udp")
    return Registration(
        _text(values, "name", LONGEST_NAME),
        read_number(values, "site", LARGEST_ID),
        read_number(values, "port", LARGEST_PORT),
        _text(values, "group", LONGEST_GROUP),
        "" if values.get("address") is None else _address(values),
        None if udp is None else read_number(values, "udp", LARGEST_PORT),
    )


def renewal_of(plain: object) -> Renewal:
    """Read a renewal."""
    values = _object(plain, ("counters", "cpu", "memory"))
    told = values.get("counters", {})
    if not isinstance(told, Mapping) or len(told) > MOST_COUNTERS:
        raise WireError(f"counters: is not allowed; an object of at most {MOST_COUNTERS} numbers")
    counters = {}
    for name in told:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_COUNTER or not _is_text(name):
            raise WireError(f"counters: a name is not allowed; 1 to {LONGEST_COUNTER} characters")
        counters[name] = _amount(told, name)
    memory = read_number({"memory": 0} | values, "memory", LARGEST_STAMP)
    return Renewal(counters, _amount({"cpu": 0.0} | values, "cpu"), memory)


def plain_node(node: Node) -> dict[str, Any]:
    """Return a node for JSON."""
    return {
        "id": node.id,
        "name": node.name,
        "site": node.site,
        "address": node.address,
        "port": node.port,
        "group": node.group,
        "paused": node.paused,
    }


def nodes_of(plain: object, most: int) -> tuple[Node, ...]:
    """Read a list of at most `most` nodes."""
    if not isinstance(plain, list) or len(plain) > most:
        raise WireError(f"nodes: is not allowed; a list of at most {most}")
    return tuple(map(_node, plain))


def _node(plain: object) -> Node:
    values = _object(plain, ("id", "name", "site", "address", "port", "group", "paused"))
    if not isinstance(values.get("paused"), bool):
        raise WireError("paused: is not allowed; true or false")
    return Node(
        read_number(values, "id", LARGEST_ID),
        _text(values, "name", LONGEST_NAME),
        read_number(values, "site", LARGEST_ID),
        _address(values),
        read_number(values, "port", LARGEST_PORT),
        _text(values, "group", LONGEST_GROUP),
        values["paused"],
    )


def read_number(values: Mapping[str, Any], key: str, most: int) -> int:
    """Return the whole number of a key, which JSON may write as 7.0, too."""
    value = values.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise WireError(f"{key}: value {_shown(value)} is not allowed; a whole number from 0 to {most}")
    return value


def _object(plain: object, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise WireError("is not allowed; an object")
    for key in plain:
        if key not in known:
            raise WireError(f"{_shown(key)}: unknown key, known here: {', '.join(known)}")
    return plain


def _text(values: Mapping[str, Any], key: str, longest: int) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= longest or not _is_text(value):
        raise WireError(f"{key}: value {_shown(value)} is not allowed; 1 to {longest} characters")
    return value


def _address(values: Mapping[str, Any]) -> str:
    address = _text(values, "address", LONGEST_ADDRESS)
    if "\0" in address:
        raise WireError(f"address: value {_shown(address)} is not allowed; no name of a host has a NUL")
    return address


def _is_text(value: str) -> bool:
    """Return whether text has an encoding; half of a surrogate pair, which JSON can hold, has none."""
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def _amount(values: Mapping[str, Any], key: str) -> float:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1e300 or not isfinite(value):
        raise WireError(f"{_shown(key)}: value {_shown(value)} is not allowed; a number of at least 0")
    return value


def _shown(value: object) -> str:
    """Return a value for a message: printable, and not long."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

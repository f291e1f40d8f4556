"""The protocols by name. A new protocol is added by a package and a line in _SPECS."""

from importlib import import_module

from protocols.errors import ConfigError, shown
from protocols.spec import ProtocolSpec

__all__ = ["file_protocols", "names", "protocol"]

_SPECS = {
    "norm": ("norm", "PROTOCOL"),
    "a": ("arq", "A"),
    "n1": ("arq", "N1"),
    "n2": ("arq", "N2"),
    "srm": ("srm", "PROTOCOL"),
    "datagram": ("datagram", "PROTOCOL"),
    "relay": ("relay", "PROTOCOL"),
    "broker": ("broker", "PROTOCOL"),
    "bus": ("bus", "PROTOCOL"),
    "fjm": ("fjm", "PROTOCOL"),
    "distributor": ("distributor", "PROTOCOL"),
    "fjm2": ("fjm2", "PROTOCOL"),
}
"""Package in `protocols` and name in it of each `ProtocolSpec`: most runs need one, and to import all takes long."""


def names() -> list[str]:
    """Return all protocol names, sorted."""
    return sorted(_SPECS)


def file_protocols() -> list[str]:
    """Return the names of the protocols that carry files without a server, sorted."""
    return [name for name in names() if protocol(name).needs_no_server]


def protocol(name: str) -> ProtocolSpec:
    """Return the protocol of this name. ConfigError for an unknown name."""
    if not isinstance(name, str) or name not in _SPECS:
        raise ConfigError(f"protocol: {shown(name)} is unknown; allowed: {', '.join(names())}")
    package, attribute = _SPECS[name]
    found: ProtocolSpec = getattr(import_module(f"protocols.{package}"), attribute)
    return found

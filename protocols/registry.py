"""The protocols by name. A new protocol is added by a package and a line in PROTOCOLS."""

from protocols import arq, broker, bus, datagram, distributor, fjm, fjm2, norm, relay, srm
from protocols.errors import ConfigError
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOLS", "file_protocols", "names", "protocol"]

PROTOCOLS = {
    "norm": norm.PROTOCOL,
    "a": arq.A,
    "n1": arq.N1,
    "n2": arq.N2,
    "srm": srm.PROTOCOL,
    "datagram": datagram.PROTOCOL,
    "relay": relay.PROTOCOL,
    "broker": broker.PROTOCOL,
    "bus": bus.PROTOCOL,
    "fjm": fjm.PROTOCOL,
    "distributor": distributor.PROTOCOL,
    "fjm2": fjm2.PROTOCOL,
}


def names() -> list[str]:
    """Return all protocol names, sorted."""
    return sorted(PROTOCOLS)


def file_protocols() -> list[str]:
    """Return the names of the protocols that carry files without a server, sorted."""
    return [name for name in names() if PROTOCOLS[name].needs_no_server]


def protocol(name: str) -> ProtocolSpec:
    """Return the protocol of this name. ConfigError for an unknown name."""
    if name not in names():
        raise ConfigError(f"protocol: {name!r} is unknown; allowed: {', '.join(names())}")
    return PROTOCOLS[name]

"""IGMP snooping of Linux bridges: groups go only where the simulator's trees go, or everywhere.

Planned groups are entered into the multicast database (bridge(8), mdb) beforehand, so nothing is lost while a bridge learns.
Other groups are learned as usual; the bridge is its own querier, because without one it would flood.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from emu.requirements import run
from emu.routing import GroupEntry
from protocols.errors import UnsupportedError

__all__ = ["flood", "prune"]

_RESPONSE = "10"
"""Query response interval in 1/100 s: how long bridges flood after a query of a new querier, their own or a neighbour's.

A query states it in 1/10 s. With less, neighbours would take it for one of IGMPv1, and flood for 10 s.
"""
_SETTLED = 0.11
_LEAST_ENTRIES = 4096
"""Room for groups in a bridge (`hash_max`), the kernel's default; a full bridge floods all groups."""


def flood(switch: str, bridge: str) -> None:
    """Have a switch's bridge forward every group to every port."""
    _set(switch, bridge, "multicast_snooping", "0")


def prune(bridges: Mapping[str, str], entries: Mapping[str, Mapping[GroupEntry, Sequence[str]]]) -> None:
    """Have bridges (by switch) forward groups only to the ports in `entries`, by switch."""
    for switch, bridge in bridges.items():
        _set(switch, bridge, "hash_max", str(max(_LEAST_ENTRIES, 2 * len(entries[switch]))))
        if any(entry.source for entry in entries[switch]):
            # With IGMPv2 the bridge would not look up sources.
            _set(switch, bridge, "multicast_igmp_version", "3")
        for name, value in (("query_response_interval", _RESPONSE), ("querier", "1"), ("snooping", "1")):
            _set(switch, bridge, f"multicast_{name}", value)
        for port in Path(f"/sys/class/net/{bridge}/brif").iterdir():
            # Else every group is sent to a neighbour that was heard to query.
            (port / "multicast_router").write_text("0")
        lines = [
            f"mdb add dev {bridge} port {port} grp {entry.group}{f' src {entry.source}' if entry.source else ''} permanent"
            for entry, ports in entries[switch].items()
            for port in ports
        ]
        run("bridge -batch -", stdin="\n".join(lines))
    time.sleep(_SETTLED)


def _set(switch: str, bridge: str, name: str, value: str) -> None:
    setting = Path(f"/sys/class/net/{bridge}/bridge/{name}")
    setting.write_text(value)
    if setting.read_text().strip() != value:
        raise UnsupportedError(f"switch {switch}: {name} can't be set to {value}")

"""Bridges that carry a group only where the simulator's trees do, or everywhere.

What IGMP snooping learns from reports is written down beforehand, so nothing is lost while it learns, and no report either. For
groups that nobody planned the bridge snoops as usual; it asks for reports itself, since without a querier it would flood.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from emu.requirements import run
from protocols.errors import UnsupportedError

__all__ = ["flood", "prune"]

_AT_ONCE = "2"
"""Hundredths of a second a new querier waits for reports before it stops flooding; the least that no clock rounds."""
_SETTLED = 0.03


def flood(switch: str, bridge: str) -> None:
    """Have the bridge of this switch send every group everywhere."""
    _set(switch, bridge, "snooping", "0")


def prune(bridges: Mapping[str, str], entries: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """Have bridges (by the names of their switches) send groups only to ports that `entries` names, by switch and group."""
    for switch, bridge in bridges.items():
        for name, value in (("query_response_interval", _AT_ONCE), ("querier", "1"), ("snooping", "1")):
            _set(switch, bridge, name, value)
        lines = [
            f"mdb add dev {bridge} port {port} grp {group} permanent"
            for group, ports in entries[switch].items()
            for port in ports
        ]
        run("bridge -batch -", stdin="\n".join(lines))
    time.sleep(_SETTLED)


def _set(switch: str, bridge: str, name: str, value: str) -> None:
    setting = Path(f"/sys/class/net/{bridge}/bridge/multicast_{name}")
    setting.write_text(value)
    if setting.read_text().strip() != value:
        raise UnsupportedError(f"switch {switch}: multicast {name} can't be set to {value}")

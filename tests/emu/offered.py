"""Packets that each link of an emulated network was offered by programs that send numbers to a group."""

from collections.abc import Collection, Mapping

from emu.launch import emulate
from protocols.hosting import Program
from tests.emu.number_protocol import GROUP, PORT, NumberCodec
from topologies.spec import Topology

__all__ = ["offered_by_link"]


def offered_by_link(
    topology: Topology, programs: Mapping[str, Program], last: Collection[str], members: Collection[str] = ()
) -> dict[str, int]:
    """Run programs by host until those of the hosts `last` have finished; `members` take part in the group.

    Only links in user space count packets, e.g. those with a delay.
    """
    run = emulate(
        topology,
        dict(programs),
        codec=NumberCodec,
        port=PORT,
        duration=20.0,
        over=lambda finished: set(last) <= set(finished),
        seed=1,
        groups={GROUP.name.partition(":")[0]: list(members)} if members else {},
    )
    return {row["link"]: row["offered"] for row in run.impairments if row.get("offered")}

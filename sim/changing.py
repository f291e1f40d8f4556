"""Links whose rate and loss change while the network runs."""

from collections.abc import Callable
from typing import Any

from protocols.errors import UsageError
from sim.link import LinkGroup
from sim.network import Network
from sim.separate_links import SeparateLinks
from topologies.channels import Bernoulli
from topologies.keys import loss_key, member_loss_key
from topologies.spec import Topology

__all__ = ["change", "check_change", "make_changeable"]


def check_change(topology: Topology, near: str, far: str) -> None:
    """UsageError for a link that is not there, is no plain one, or begins at a counted group."""
    if not topology.graph.has_edge(near, far):
        raise UsageError(f"{near!r} and {far!r} have no link; a counted group is named as a whole")
    if near in topology.host_nodes and topology.node(near).count is not None:
        raise UsageError("the links of a counted group change on their way to it only")
    if not topology.link(near, far).plain or any(getattr(topology.node(name).model, "pause", False) for name in (near, far)):
        raise UsageError("only links with a plain queue, constant delay and no pause change")


def make_changeable(network: Network, near: str, far: str) -> None:
    """Call before the network runs."""
    for link in _links(network, near, far):
        link.fixed = False


def change(network: Network, near: str, far: str, rate: float | None, loss: float | None) -> Callable[[], None]:
    """From now on the link from `near` to `far` has another rate (bytes per second), another loss, or both; what undoes it.

    Packets that wait keep the times they have. Losses are counted anew, as on a link of its own.
    """
    links = _links(network, near, far)
    before = [(link, link.sampler, link.ports()[0].rate) for link in links]
    key = loss_key(network.seed, near, far)
    for place, link in enumerate(links):
        if rate is not None:
            _set_rate(link, rate)
        if loss is not None:
            link.sampler = _sampler(link, key, place, len(links), loss)

    def restore() -> None:
        for link, sampler, former in before:
            link.sampler = sampler
            _set_rate(link, former)

    return restore


def _links(network: Network, near: str, far: str) -> list[Any]:
    """The link, or those of all members where each has its own."""
    found: Any = network.plain_link(near, far)
    # What stands before a link that is watched has the link itself.
    found = getattr(found, "link", found)
    return found.links if isinstance(found, SeparateLinks) else [found]


def _set_rate(link: Any, rate: float) -> None:
    for port in link.ports():
        port.rate = rate


def _sampler(link: Any, key: int, place: int, links: int, loss: float) -> Any:
    channel = Bernoulli(p=loss)
    if isinstance(link, LinkGroup):
        return channel.group(key, link.head.count)
    return channel.link(member_loss_key(key, place) if links > 1 else key)

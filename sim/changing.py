"""Links whose rate and loss change while the network runs."""

from collections.abc import Callable

from protocols.errors import UsageError
from sim.link import Link, LinkGroup
from sim.network import Network
from sim.planned_arrival import PlannedArrivals
from sim.separate_links import SeparateLinks
from topologies.channels import Bernoulli
from topologies.keys import line_key, loss_key
from topologies.spec import Topology

__all__ = ["change", "check_change", "make_changeable"]


def check_change(topology: Topology, near: str, far: str) -> None:
    """Raise UsageError for a link that does not exist, is no plain one, or begins at a counted group."""
    if not topology.graph.has_edge(near, far):
        raise UsageError(f"{near!r} and {far!r} have no link; a counted group is named as a whole")
    if near in topology.host_nodes and topology.node(near).count is not None:
        raise UsageError("the links of a counted group change on their way to it only")
    if not topology.link(near, far).plain or any(getattr(topology.node(name).model, "pause", False) for name in (near, far)):
        raise UsageError("only links with a plain queue, constant delay and no pause change")


def make_changeable(network: Network, near: str, far: str) -> None:
    """Prepare a link for `change`; call before the network runs."""
    for link in _links(network, near, far):
        link.is_constant = False
        link.queue.remember()
        if link.plans is None:
            link.plans = PlannedArrivals(network.fabric, link.delay)


def change(network: Network, near: str, far: str, rate: float | None, loss: float | None) -> Callable[[], None]:
    """Set the rate (bytes per second), the loss probability, or both, of the link from `near` to `far` from now on.

    Packets that wait are sent at the new rate, the one in transmission at the old one. Losses of packets offered from
    now on are those of a new sampler, which counts occurrences from 1. Returns what undoes the change.
    """
    links = _links(network, near, far)
    before = [(link, link.sampler, link.queue.rate) for link in links]
    for place, link in enumerate(links):
        if rate is not None:
            _set_rate(network, link, rate)
        if loss is not None:
            channel = Bernoulli(p=loss)
            if isinstance(link, LinkGroup):
                link.sampler = channel.group(loss_key(network.seed, near, far), link.head.count)
            else:
                link.sampler = channel.link(line_key(network.topology, network.seed, near, far, place))

    def restore() -> None:
        for link, sampler, former in before:
            link.sampler = sampler
            _set_rate(network, link, former)

    return restore


def _links(network: Network, near: str, far: str) -> "list[Link | LinkGroup]":
    """Return the link, or those of all members where each has its own."""
    found = network.plain_link(near, far)
    # A link of a watched network is behind a tap.
    found = getattr(found, "link", found)
    links = found.links if isinstance(found, SeparateLinks) else [found]
    return [link for link in links if isinstance(link, Link | LinkGroup)]


def _set_rate(network: Network, link: Link | LinkGroup, rate: float) -> None:
    assert link.plans is not None, "make_changeable is called before the run"
    link.plans.change_rate(link.queues(), rate, network.env.now)

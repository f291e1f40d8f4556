"""Networks as data: graphs with validated attributes, generators, loss channels, multicast trees and addresses."""

from topologies.generators import AnyTopology
from topologies.spec import LinkAttributes, LinkSpec, NodeSpec, Topology

__all__ = ["AnyTopology", "LinkAttributes", "LinkSpec", "NodeSpec", "Topology"]

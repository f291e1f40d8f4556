"""Networks as data: graphs with checked attributes, generators, channels, trees and addresses."""

from topologies.generators import AnyTopology
from topologies.spec import LinkAttributes, LinkSpec, NodeSpec, Topology

__all__ = ["AnyTopology", "LinkAttributes", "LinkSpec", "NodeSpec", "Topology"]

"""The management messages of the Distributor: every process announces itself and answers questions about its connections."""

from protocols.distributor.management.agent import ManagementAgent
from protocols.distributor.management.framing import ManagementFraming
from protocols.distributor.management.observer import ManagementObserver
from protocols.distributor.management.wire import ManagementCodec

__all__ = ["GROUP", "ManagementAgent", "ManagementCodec", "ManagementFraming", "ManagementObserver"]

GROUP = "224.42.42.100:4242"
"""The multicast group of announcements, unless an application names another."""

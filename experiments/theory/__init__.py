"""Closed forms for reliable multicast, links and queues."""

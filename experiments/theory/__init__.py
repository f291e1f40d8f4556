"""Closed forms of reliable multicast and of links."""

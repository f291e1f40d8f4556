"""Tests of `protocols.datagram`."""

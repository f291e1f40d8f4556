"""Tests of `protocols.nacked`."""

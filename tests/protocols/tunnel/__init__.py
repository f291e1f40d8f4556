"""Tests of `protocols.tunnel`."""

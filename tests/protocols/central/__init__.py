"""Tests of `protocols.relay`."""

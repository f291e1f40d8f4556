"""Tests of `protocols.broker`."""

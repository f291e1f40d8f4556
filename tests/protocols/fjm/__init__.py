"""Tests of `protocols.fjm`."""

"""Tests of `protocols.admin`."""

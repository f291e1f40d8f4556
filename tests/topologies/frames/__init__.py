"""Tests of Ethernet frames."""

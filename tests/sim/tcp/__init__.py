"""Tests of connections in the simulator."""

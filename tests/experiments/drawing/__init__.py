"""Tests of drawings of runs and topologies."""

"""Tests of topologies, channels and queues."""

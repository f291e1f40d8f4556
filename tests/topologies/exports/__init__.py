"""Tests of the export of topologies."""

"""Tests of `experiments.workload`."""

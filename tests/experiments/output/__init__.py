"""Tests of `experiments.output`."""

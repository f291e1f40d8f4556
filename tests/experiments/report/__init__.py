"""Tests of experiments.report."""

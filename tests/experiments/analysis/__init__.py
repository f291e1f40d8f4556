"""Tests of experiments.analysis."""

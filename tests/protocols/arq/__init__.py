"""Tests of the ARQ baselines."""

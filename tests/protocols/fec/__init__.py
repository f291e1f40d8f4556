"""Tests of erasure coding."""

"""Tests of the example programs."""

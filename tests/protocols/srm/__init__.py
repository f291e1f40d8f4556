"""Tests of the SRM-like protocol."""

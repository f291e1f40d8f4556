"""Tests of `mcastlab twin`."""

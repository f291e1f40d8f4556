"""Tests of the fast SRM members."""

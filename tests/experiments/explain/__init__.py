"""Tests of the explanation of late and missing objects."""

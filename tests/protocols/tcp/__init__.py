"""Tests of what TCP has in every world."""

"""Tests of selectors."""

"""Helpers shared by tests: toy protocol, recorded traffic, capture and sweep files, and requirements of tests."""

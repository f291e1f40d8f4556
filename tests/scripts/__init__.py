"""Tests of what builds the project."""

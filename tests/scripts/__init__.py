"""Tests of the build scripts."""

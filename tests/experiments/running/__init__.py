"""Tests of running scenarios and recording runs."""

"""Scenarios: the one input of a run, read from YAML and validated."""

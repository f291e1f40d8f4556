"""Capture files and traces of runs, read back."""

"""Checks of the repository itself: imports, shape, words, documentation, and maintenance files."""

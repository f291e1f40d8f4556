"""Parameter sweeps on Spark: which runs, where they are computed, and where their results lie.

Imported part by part, so that commands that need no Spark do not load it.
"""

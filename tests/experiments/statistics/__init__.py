"""Tests of intervals, verdicts and their power, by simulation with fixed seeds and against scipy."""

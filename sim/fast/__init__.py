"""Lookahead: many planned packets of one sender carried with one event. Used by the fast engine only."""

"""Tests of the rules that judge a scenario before it runs."""

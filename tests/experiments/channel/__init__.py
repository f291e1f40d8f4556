"""Tests of channel estimation from captures and traces."""

"""Tests of the congestion control of NORM."""

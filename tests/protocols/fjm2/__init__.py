"""Tests of protocols.fjm2."""

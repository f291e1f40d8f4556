"""Tests of protocols.distributor."""

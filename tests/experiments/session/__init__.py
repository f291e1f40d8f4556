"""Tests of sessions on a real network: over the loopback device, or on parts of a session alone."""

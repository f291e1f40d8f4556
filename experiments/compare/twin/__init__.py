"""Paired runs of one scenario in two worlds, simulator and emulation, and tests of their equivalence."""

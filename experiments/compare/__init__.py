"""Comparison of protocols, and of simulator and emulation, by paired differences."""

"""Parameter sweeps."""

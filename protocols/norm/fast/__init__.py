"""NORM for the fast engine of the simulator: subclasses with equal results."""

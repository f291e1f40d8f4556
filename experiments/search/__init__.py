"""Random search for faults that break what must hold in every run."""

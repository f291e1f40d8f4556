"""Random search for fault schedules that violate the invariants of every run."""

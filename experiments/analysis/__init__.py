"""What the runs of a sweep say: groups with intervals, paired comparisons, effects, curves over time, theory beside them."""

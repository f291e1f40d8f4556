"""Statistics of sweep results: group summaries, paired comparisons, variance decomposition, time series, and theory."""

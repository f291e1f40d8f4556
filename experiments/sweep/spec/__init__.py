"""What a sweep runs and measures: its file, its points, its run ids and its metrics."""

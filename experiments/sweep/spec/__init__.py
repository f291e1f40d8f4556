"""Definition of a sweep: its file, its points, its run ids and its metrics."""

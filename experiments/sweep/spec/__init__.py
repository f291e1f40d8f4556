"""What a sweep varies: its file, its grid of points, conditions and samples."""

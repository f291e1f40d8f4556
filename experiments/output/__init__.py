"""Output of results: tables, result folders and progress lines."""

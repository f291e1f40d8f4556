"""One scenario in two worlds, and whether they agree."""

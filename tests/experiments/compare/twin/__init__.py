"""One scenario in two worlds."""

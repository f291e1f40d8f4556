"""Machines of the ARQ protocols that a host can advance many at a time, and whose results are those of the plain ones."""

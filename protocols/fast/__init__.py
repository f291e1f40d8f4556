"""Machines that a host can advance many at a time; their results are those of the plain machines."""

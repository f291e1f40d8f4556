"""Readers of capture files and of run traces."""

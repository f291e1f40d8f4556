"""NORM-CC, the congestion control of NORM: TCP-friendly and for the slowest receiver (RFC 5740 5.5.2, RFC 4654)."""

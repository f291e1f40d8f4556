"""The shortcuts of the fast engine: everything here may be deleted, and the strict engine runs as before."""

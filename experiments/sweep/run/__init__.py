"""Execution of a sweep: which runs are missing, Spark jobs, isolation of each run in a child process, progress."""

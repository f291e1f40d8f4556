"""How the runs of a sweep are made: tasks, Spark, progress, and runs in child processes."""

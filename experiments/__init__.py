"""What to run, how often, what it cost and what it means: scenarios, runs, results and the `mcastlab` command."""

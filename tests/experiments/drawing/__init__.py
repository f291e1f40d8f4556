"""Pictures of runs and topologies."""

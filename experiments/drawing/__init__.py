"""Pictures of runs and topologies, as SVG."""

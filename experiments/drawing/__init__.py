"""SVG drawings of runs and topologies."""

"""Reports of sweeps: one HTML file for a browser, and every figure as PNG and SVG for papers."""

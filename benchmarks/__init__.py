"""Measurements of speed and memory, of the pure build unless MCASTLAB_PURE is 0: `python -m benchmarks.NAME [--json]`."""

import os

os.environ.setdefault("MCASTLAB_PURE", "1")

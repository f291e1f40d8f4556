"""Tests. They run the pure build, in processes they start, too, unless MCASTLAB_PURE is 0."""

import os

os.environ.setdefault("MCASTLAB_PURE", "1")

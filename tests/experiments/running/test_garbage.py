"""Objects that exist are excluded from garbage collection, and included again afterwards."""

import subprocess
import sys

LIVE = """
import gc
from experiments.running.garbage import frozen
from experiments.running.live import live
counts = [gc.get_freeze_count()]
with live():
    counts.append(gc.get_freeze_count())
    with frozen():
        pass
    counts.append(gc.get_freeze_count())
counts.append(gc.get_freeze_count())
print(*map(bool, counts))
"""


def test_what_was_loaded_before_a_session_is_not_searched_for_cycles_until_its_end() -> None:
    # In a process of its own, since that of the tests has excluded objects already.
    told = subprocess.run([sys.executable, "-c", LIVE], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["False", "True", "True", "False"]

"""Figures are drawn by processes that end with the command, however it ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

pytest.importorskip("matplotlib")

DRAWING = """
import os, sys, time
from experiments.report import matplotlib_figures as figures

figures.prepare()
print(*{each.result() for each in [figures._pool().submit(os.getpid) for _ in range(50)]}, flush=True)
time.sleep(60)
"""


def test_processes_that_draw_end_when_the_command_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", DRAWING], stdout=subprocess.PIPE, cwd=ROOT, text=True) as drawing:
        assert drawing.stdout is not None
        found = drawing.stdout.readline().split()
        drawing.kill()
    left = [Path("/proc", number) for number in found]
    for _ in range(500):
        left = [each for each in left if each.exists()]
        if not left:
            break
        time.sleep(0.02)
    for each in left:
        os.kill(int(each.name), 9)
    assert found
    assert not left

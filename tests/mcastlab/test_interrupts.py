"""Ctrl-C ends the command quietly with 130, also while its modules are imported and when it has ended."""

import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT

INTERRUPTED_AT = """
import atexit, os, runpy, signal, sys

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            interrupt()

start, moment = sys.argv[1:3]
if moment == "exit":
    atexit.register(interrupt)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["mcastlab", "scenarios", "--brief"]
"""
STARTS = {
    "python -m mcastlab": "runpy.run_module('mcastlab', run_name='__main__', alter_sys=True)",
    "the installed command": "from mcastlab.__main__ import main; main()",
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("moment", ["experiments.cli", "typer", "protocols.errors", "experiments.commands.scenarios", "exit"])
def test_an_interrupt_at_any_moment_ends_the_command_quietly(start: str, moment: str) -> None:
    code = INTERRUPTED_AT + STARTS[start]
    done = subprocess.run([sys.executable, "-c", code, start, moment], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


LOST = """
import importlib.util, os, signal, sys, time
from importlib.abc import Loader, MetaPathFinder

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0)

class Freed:
    def __del__(self):
        interrupt()

class Module(MetaPathFinder, Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in ("discards", "endless") else None

    def exec_module(self, module):
        try:
            interrupt()
        except BaseException:
            # Code in C does this.
            pass
        while module.__name__ == "endless":
            pass

def work():
    if sys.argv[1] == "freed":
        Freed()
    else:
        importlib.import_module(sys.argv[1])
    time.sleep(20)
    print("still there")

sys.meta_path.insert(0, Module())
import experiments.cli
experiments.cli.main = work
"""


@pytest.mark.parametrize("where", ["freed", "discards", "endless"])
def test_an_interrupt_is_not_lost_where_exceptions_are_discarded(where: str) -> None:
    code = LOST + STARTS["the installed command"]
    done = subprocess.run(
        [sys.executable, "-c", code, where], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_command_in_the_background_of_a_shell_is_not_interrupted() -> None:
    """The shell ignores SIGINT for it, and so does the command."""
    code = INTERRUPTED_AT.replace("start, moment", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nstart, moment")
    arguments = [sys.executable, "-c", code + STARTS["the installed command"], "-", "experiments.cli"]
    assert subprocess.run(arguments, cwd=ROOT, capture_output=True, check=False).returncode == 0

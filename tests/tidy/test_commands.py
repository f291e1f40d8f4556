"""Every command in the documentation runs.

A block that begins with ```console is a script: its lines after `$ ` are commands (a `\\` at the end goes on in the next line),
the other lines are sample output and not compared. The whole block runs in one shell, in a fresh folder with links to the
repository's files and with `mcastlab` on the path, and has to exit with code 0. Options follow the word console:

* `needs=emulation`, `needs=libnorm1` or `needs=spark`: skipped where that is missing;
* `exit=1`: this is the code the block has to end with; `exit=0,4`: one of these (a busy machine may leave a twin undecided).

A block that is on two pages is run once. `make NAME` is only looked up, and `git clone`, `cd`, `sudo` and `pip` are left out:
they set up the machine.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emu.namespaces import run_isolated
from tests.support.needs import missing
from tests.tidy.tree import ROOT, files, label

SECONDS = 500
LEFT_OUT = ("git clone", "cd ", "sudo ", "pip ", "apt")
TALKS = re.compile(r"mcastlab (send|recv|stream)\b")
LOCAL = re.compile(r"--(iface|lan|listen) (lo\b|127\.)")
KEPT = ("PYTHONPATH", "SPARK_SUBMIT_OPTS", "MCASTLAB_SPARK_DIR", "MCASTLAB_SPARK_IDLE", "COVERAGE_PROCESS_CONFIG")
"""Environment variables that the commands inherit: import path, Java options, the Spark server of the tests, and coverage."""


@dataclass(frozen=True)
class Block:
    """One console block of a page."""

    page: Path
    line: int
    options: str
    text: str

    def __str__(self) -> str:
        return f"{label(self.page)}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """Return the commands with continued lines joined."""
        joined = re.sub(r"\\\n(> |  +)?", " ", self.text)
        return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]

    def option(self, name: str) -> list[str]:
        """Return the values given for an option."""
        return re.findall(rf"\b{name}=(\S+)", self.options)


def blocks(page: Path) -> list[Block]:
    """Return the console blocks of a page."""
    text = page.read_text()
    found = re.finditer(r"^```console([^\n]*)\n(.*?)^```", text, re.M | re.S)
    return [Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2]) for match in found]


BLOCKS = [block for page in files() if page.suffix == ".md" for block in blocks(page)]


def once(found: Iterable[Block]) -> list[Block]:
    """Remove blocks that repeat the commands of an earlier one."""
    first: dict[tuple[str, tuple[str, ...]], Block] = {}
    for block in found:
        first.setdefault((block.options, tuple(block.commands)), block)
    return list(first.values())


def case(block: Block) -> Any:
    """Make a test parameter of a block: two programs that wait, and twins, are timed; Spark and emulation are slow."""
    needs = set(block.option("needs"))
    if TALKS.search(block.text):
        marks = [pytest.mark.serial if missing("emulation") else pytest.mark.timed]
    elif "emulation" in needs and "mcastlab twin" in block.text:
        marks = [pytest.mark.serial]
    else:
        marks = [pytest.mark.slow] if {"spark", "emulation"} & needs else []
    return pytest.param(block, id=str(block), marks=marks)


def script(commands: list[str]) -> str:
    """Join the commands into a shell script that stops at the first failure and waits for background processes."""
    lines = []
    for command in commands:
        if command.startswith("make"):
            lines.append(f"make -C '{ROOT}' -n {command.removeprefix('make')} >/dev/null")
        elif not command.startswith(LEFT_OUT):
            lines.append(command)
    # `wait` alone would discard the exit codes of background processes.
    return "\n".join([*lines, "for job in $(jobs -p); do wait $job; done"])


def run_script(text: str, folder: Path, environment: dict[str, str]) -> tuple[int, str, str]:
    """Run a shell script; return its exit code and what it printed."""
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


@pytest.mark.timeout(SECONDS + 20)
@pytest.mark.parametrize("block", [case(block) for block in once(BLOCKS)])
def test_commands_in_the_documentation_run(block: Block, tmp_path: Path) -> None:
    for need in block.option("needs"):
        if reason := missing(need):
            pytest.skip(reason)
    folders = (
        "mcastlab",
        "protocols",
        "topologies",
        "sim",
        "emu",
        "experiments",
        "examples",
        "benchmarks",
        "tests",
        "docs",
        "scripts",
    )
    for name in folders:
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    path = f"{sys.prefix}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    execute = partial(run_script, script(block.commands), tmp_path, {"PATH": path, "HOME": str(tmp_path), **kept})
    # In a network of their own, blocks that run at the same time may use the same ports.
    is_isolated = LOCAL.search(block.text) and not missing("emulation")
    code, out, err = run_isolated(execute) if is_isolated else execute()
    expected = (block.option("exit") or ["0"])[0].split(",")
    assert str(code) in expected, f"{block.commands}\n{out[-2000:]}\n{err[-2000:]}"


def test_documented_commands_send_no_packets_to_real_networks() -> None:
    wrong = [
        f"{block}: {command}"
        for block in BLOCKS
        for command in block.commands
        if TALKS.search(command) and not re.search(r"--iface (lo|127\.)", command) and not block.option("needs")
    ]
    assert not wrong, "name the loopback device by --iface:\n" + "\n".join(wrong)


def test_a_script_omits_commands_that_set_up_the_machine() -> None:
    assert "sudo" not in script(["sudo reboot", "git clone somewhere", "cd it"])
    assert "-n  demo" in script(["make demo"])


def test_continued_lines_are_joined_into_one_command() -> None:
    block = Block(ROOT / "README.md", 1, "", "$ a --b \\\n    --c\nshown\n$ d\n")
    assert block.commands == ["a --b  --c", "d"]


def test_a_block_on_two_pages_is_run_once() -> None:
    first, again, other = (
        Block(ROOT / page, 1, options, "$ a\n") for page, options in (("a.md", ""), ("b.md", ""), ("b.md", " exit=1"))
    )
    assert once([first, again, other]) == [first, other]

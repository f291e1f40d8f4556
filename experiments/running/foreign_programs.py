"""Foreign programs in the roles of a scenario, and what they received by the names of what was sent."""

import os
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from emu.foreign_program import ForeignProgram
from emu.peers.command import CommandReceiver, CommandSender
from emu.peers.libnorm import load
from emu.peers.nrl_program import NrlReceiverProgram, NrlSenderProgram
from experiments.running.program import Job, Node
from experiments.running.result import Expected
from experiments.scenario.foreign_nodes import NodeChoice
from protocols.errors import ConfigError, UnsupportedError

__all__ = ["by_content", "claimed", "guest_receiver", "guest_sender", "require"]


def guest_sender(choice: NodeChoice, node: Node, seed: int, jobs: Sequence[Job]) -> ForeignProgram:
    """A foreign program that sends these. ConfigError for a command that had to send at several times."""
    if not choice.command:
        return NrlSenderProgram(node.config, node.id, node.group, seed, [(job.at, job.content) for job in jobs])
    if len({job.at for job in jobs}) > 1:
        raise ConfigError(f"nodes: a command is run once, and {choice.command[0]!r} would have to send at several times")
    return CommandSender(_located(choice), node.id, node.group, jobs[0].at, [job.content for job in jobs])


def guest_receiver(choice: NodeChoice, node: Node, seed: int) -> ForeignProgram:
    """A foreign program that receives the group."""
    if not choice.command:
        return NrlReceiverProgram(node.config, node.id, node.group, seed)
    return CommandReceiver(_located(choice), node.id, node.group)


def _located(choice: NodeChoice) -> list[str]:
    """The words of a command; its program is found from here, since it will run in another folder."""
    program, *rest = choice.command
    found = shutil.which(program)
    return [program if found is None else os.path.abspath(found), *rest]


def require(chosen: Mapping[str, NodeChoice]) -> None:
    """UnsupportedError naming the node whose program this machine lacks."""
    for name, choice in chosen.items():
        if not choice.command:
            _require_library(name)
        elif shutil.which(choice.command[0]) is None:
            raise UnsupportedError(
                f"nodes.{name}.run: {choice.command[0]!r} is no program on this machine; install it, or write its path"
            )


def _require_library(name: str) -> None:
    try:
        load()
    except UnsupportedError as error:
        raise UnsupportedError(f"nodes.{name}.run: {error}") from error


def claimed(told: Mapping[str, Any], sent: Expected) -> Mapping[str, Any]:
    """The result of a foreign receiver, its `files` as objects that were sent: equal size and digest are equal objects.

    A file that nobody sent becomes an object that nobody sent.
    """
    if "files" not in told:
        return told
    wanted = defaultdict(list)
    for key, value in sorted(sent.items(), reverse=True):
        wanted[value].append(key)
    rows = []
    for number, (size, digest) in enumerate(told["files"]):
        keys = wanted[size, digest]
        rows.append([*(keys.pop() if keys else (-1, number)), size, digest])
    return {**told, "received": rows}


def by_content(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """A receiver's result without object ids, since a foreign sender chooses its own."""
    return told if "files" in told else {**told, "files": [row[2:] for row in told.get("received", ())]}

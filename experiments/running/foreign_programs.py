"""Foreign programs as senders and receivers of a scenario."""

import os
import shutil
from collections.abc import Mapping, Sequence

from emu.foreign_program import ForeignProgram
from emu.peers.brokers import BROKERS, ForeignBroker
from emu.peers.command import CommandReceiver, CommandSender
from emu.peers.libnorm import load
from emu.peers.nrl_program import NrlReceiverProgram, NrlSenderProgram
from experiments.running.program import Job, Node
from experiments.scenario.foreign_nodes import NodeChoice
from protocols.errors import ConfigError, UnsupportedError

__all__ = ["check_programs", "foreign_receiver", "foreign_sender"]


def foreign_sender(choice: NodeChoice, node: Node, seed: int, jobs: Sequence[Job]) -> ForeignProgram:
    """Make a foreign program that sends the jobs. ConfigError for a command with jobs at several times."""
    if not choice.command:
        return NrlSenderProgram(node.config, node.id, node.group, seed, [(job.at, job.content) for job in jobs])
    if len({job.at for job in jobs}) > 1:
        raise ConfigError(f"nodes: a command is run once, and {choice.command[0]!r} would have to send at several times")
    return CommandSender(_located(choice), node.id, node.group, jobs[0].at, [job.content for job in jobs])


def foreign_receiver(choice: NodeChoice, node: Node, seed: int) -> ForeignProgram:
    """Make a foreign program that receives from the group of `node`."""
    if not choice.command:
        return NrlReceiverProgram(node.config, node.id, node.group, seed)
    return CommandReceiver(_located(choice), node.id, node.group)


def _located(choice: NodeChoice) -> list[str]:
    """Return the words of a command with an absolute path of its program, since it runs in another folder."""
    program, *rest = choice.command
    found = shutil.which(program)
    return [program if found is None else os.path.abspath(found), *rest]


def check_programs(chosen: Mapping[str, NodeChoice]) -> None:
    """UnsupportedError, which names the node, for a program that this machine lacks."""
    for name, choice in chosen.items():
        if choice.run in BROKERS:
            _require_broker(name, BROKERS[str(choice.run)])
        elif not choice.command:
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


def _require_broker(name: str, broker: ForeignBroker) -> None:
    lacking = broker.lacks
    if lacking is not None:
        raise UnsupportedError(
            f"nodes.{name}.run: {broker.name} needs {lacking}, which this machine lacks: sudo apt-get install {broker.packages}"
        )

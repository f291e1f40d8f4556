"""The state file of a registry that is killed at random moments of writing."""

import json
import os
import signal
import time
from pathlib import Path
from random import Random
from typing import Any

from emu.disk import disk_opener
from emu.host import UdpHost
from emu.loop import new_loop
from protocols.admin.config import AdminOptions
from protocols.admin.events import RegistryOpened
from protocols.admin.registration import Registration
from protocols.admin.registry import Answer, Registry
from protocols.admin.wire import AdminCodec
from protocols.events import Event
from protocols.rng import Rng
from topologies.disk_model import DiskModel

KILLS = 20
MANY = 200
"""Nodes beyond which none registers: on a fast disk there would soon be more than a registry takes."""


def serve(file: Path, pipe: int, round_number: int) -> None:
    """Run a registry that registers, pauses and removes without end; write its first list, and each answer."""
    loop = new_loop()
    disk = disk_opener(file, "registry", DiskModel())
    host = UdpHost(loop, AdminCodec(), interface="127.0.0.1", port=0, rng=Rng(round_number), open_disk=disk)
    registry = Registry(host, AdminOptions(period=3600, state=1, lease=3600), round_number, listens=False)
    steps = iter(range(1_000_000))

    def tell(*told: Any) -> None:
        os.write(pipe, json.dumps(told).encode() + b"\n")

    def change() -> None:
        nodes = registry.table.nodes
        step = next(steps)
        if step % 4 == 3 or len(nodes) > MANY:
            number = nodes[step % len(nodes)].id
            tell("asked", "remove", number)
            host.call(registry.remove, number, lambda answer: done(answer, "remove", number))
        elif step % 4 == 2:
            node = nodes[step % len(nodes)]
            tell("asked", "pause", node.id)
            host.call(registry.pause, node.id, not node.paused, lambda answer: done(answer, "pause", node.id))
        else:
            registration = Registration(f"t{step}", 1, 1 + round_number * 3000 + step, "all")
            tell("asked", "register", 0)
            host.call(registry.register, registration, "127.0.0.1", lambda answer: done(answer, "register", 0))

    def done(answer: Answer, what: str, number: int) -> None:
        assert answer.status in (200, 201, 204)
        body = answer.body or {}
        tell("answered", what, body.get("id", number), body.get("paused", False))
        loop.call_soon(change)

    def heard(event: Event) -> None:
        if isinstance(event, RegistryOpened):
            tell("knew", registry.number, {node.id: node.paused for node in registry.table.nodes})
            loop.call_soon(change)

    host.run(registry, heard)
    loop.run()


def round_of(file: Path, number: int, seconds: float) -> list[Any]:
    """Run a registry until it is killed, `seconds` after it has served first; return what it wrote."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            serve(file, write, number)
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        first = pipe.readline()
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        rest = pipe.read()
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    return [json.loads(line) for line in (first + rest).split(b"\n") if line]


def test_the_list_survives_twenty_kills_at_random_moments_of_writing(tmp_path: Path) -> None:
    random, known, asked, number = Random(1), dict[int, bool](), None, None
    changes = 0
    for kill in range(KILLS):
        told = round_of(tmp_path / "state", kill, random.uniform(0.005, 0.08))
        (word, registry, found), *rest = told
        assert word == "knew"
        assert number in (None, registry)
        number = registry
        agree({int(node): paused for node, paused in found.items()}, known, asked)
        known = {int(node): paused for node, paused in found.items()}
        asked = None
        for line in rest:
            if line[0] == "asked":
                asked = line[1:]
            else:
                _, what, node, paused = line
                known.pop(node, None)
                if what != "remove":
                    known[node] = paused
                asked = None
                changes += 1
    assert changes > KILLS


def agree(found: dict[int, bool], known: dict[int, bool], asked: Any) -> None:
    """Check that a list has all changes that were answered, and at most the one that was `asked` for beside them."""
    if found == known:
        return
    what, number = asked
    if what == "register":
        (new,) = found.keys() - known.keys()
        assert {node: paused for node, paused in found.items() if node != new} == known
    elif what == "remove":
        assert found == {node: paused for node, paused in known.items() if node != number}
    else:
        assert found == known | {number: not known[number]}

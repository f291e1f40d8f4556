"""Brokers on the loopback device, and clients of `stomp.py` for them."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emu.peers.brokers import BROKERS
from emu.peers.child import Child
from experiments.contract.worlds import free_port

__all__ = ["Client", "activemq", "ours", "until"]

ADDRESS = "127.0.0.1"
PATIENCE = 30.0


def until(done: Callable[[], bool], what: str) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.005)


@contextmanager
def ours(folder: Path) -> Iterator[int]:
    """Run `mcastlab broker serve`, and yield its port."""
    port = free_port()
    words = ["broker", "serve", "--listen", f"{ADDRESS}:{port}", "--json"]
    run = "import sys; from experiments.cli import main; sys.argv[0] = 'mcastlab'; main()"
    process = subprocess.Popen([sys.executable, "-c", run, *words], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline()) == {"event": "listening", "at": f"{ADDRESS}:{port}"}
        yield port
    finally:
        process.terminate()
        last = json.loads(process.stdout.readlines()[-1])
        assert process.wait(PATIENCE) == 130
        assert last["event"] == "summary"


@contextmanager
def activemq(folder: Path) -> Iterator[int]:
    """Run ActiveMQ, and yield the port of its STOMP."""
    where = ADDRESS, free_port()
    broker = BROKERS["activemq"]
    child = Child(broker.command(folder, where), folder)
    try:
        child.await_port(where, PATIENCE)
        yield where[1]
    finally:
        child.end()


class Client:
    """A client of `stomp.py`, with what it received."""

    def __init__(self, port: int) -> None:
        import stomp

        self.messages: list[tuple[dict[str, str], str]] = []
        self.receipts: list[str] = []
        self.errors: list[str] = []
        self.connection = stomp.Connection12([(ADDRESS, port)], heartbeats=(5000, 5000))
        self.connection.set_listener("", self)
        self.connection.connect(wait=True)

    def __getattr__(self, name: str) -> Any:
        # What else a listener may be told does not matter here.
        if name.startswith("on_"):
            return lambda *arguments: None
        raise AttributeError(name)

    def on_message(self, frame: Any) -> None:
        """Keep a message."""
        self.messages.append((frame.headers, frame.body))

    def on_receipt(self, frame: Any) -> None:
        """Keep a receipt."""
        self.receipts.append(frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        """Keep an error."""
        self.errors.append(frame.headers["message"])

    def confirmed(self, receipt: str) -> None:
        """Wait for a receipt."""
        until(lambda: receipt in self.receipts, f"no receipt {receipt}; errors {self.errors}")

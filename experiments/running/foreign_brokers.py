"""Foreign brokers on a host of an emulation, and the C programs that publish and subscribe at mosquitto.

ActiveMQ speaks STOMP, so the publishers and subscribers of the protocol `broker` are its clients as they are. Mosquitto speaks
MQTT: `mosquitto_pub` gets the messages of a plan as lines of text, and `mosquitto_sub` prints those it receives, each with the
time. What is measured is the broker and these programs; here lines are only written, read and compared.
"""

import tempfile
import threading
import time
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any, cast

from emu.addresses import SocketAddress
from emu.peers.brokers import BROKERS, mosquitto_pub, mosquitto_sub
from emu.peers.child import Child
from experiments.workload.bodies import body_of
from experiments.workload.publish import LIFE_SHIFT, MessagePlan, PublishWorkload
from experiments.workload.subscribe import SubscribeWorkload
from protocols.errors import ConfigError
from protocols.hosting import PortsHost
from protocols.machine import Machine

__all__ = ["ForeignBrokerProgram", "MosquittoPublisher", "MosquittoSubscriber", "check_mosquitto"]

LEAST_SIZE = 32
"""Bytes of the shortest message: publisher and number are in its text."""
WINDOW = 64
"""Messages that `mosquitto_pub` is given before the broker has acknowledged them; it would keep any number in memory."""
Place = tuple[str, int]
"""A host, and the number of one of its ports."""
_TEXT = bytes.maketrans(bytes(range(256)), bytes(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-" * 4))
_ACKNOWLEDGED = b"received PUBACK"


def check_mosquitto(work: PublishWorkload | SubscribeWorkload, key: str) -> None:
    """ConfigError, naming the key, for a workload that the programs of mosquitto can't carry."""
    if isinstance(work, SubscribeWorkload):
        if work.selector:
            raise ConfigError(f"{key}.selector: value {work.selector!r} is not allowed; mosquitto has no selectors")
        return
    for name, usual in (("properties", {}), ("expires", None)):
        if getattr(work, name) != usual:
            raise ConfigError(f"{key}.{name}: is not allowed; messages at mosquitto have a body only")
    sizes = work.size
    least = sizes if isinstance(sizes, int) else min(sizes) if isinstance(sizes, Mapping) else sizes.low
    if least < LEAST_SIZE:
        raise ConfigError(f"{key}.size: value {least} is not allowed; at mosquitto at least {LEAST_SIZE} bytes")


def _text_of(seed: int, client: int, number: int, size: int) -> bytes:
    """Return a message of `size` bytes that is a line of text: its publisher, its number, and its body as letters."""
    head = b"%x.%x." % (client, number)
    return head + body_of(seed, client, number, size - len(head)).translate(_TEXT)


def _address(host: PortsHost, place: Place) -> SocketAddress:
    return cast(SocketAddress, host.address_of(*place))


class _Program:
    """A program on a host that starts again after each crash, in a folder of its own."""

    machine: Machine | None = None
    """None: it is no machine of this project."""

    def __init__(self) -> None:
        self._restarts = -1
        self._children: list[Child] = []
        self._failures: list[str] = []
        self._host: PortsHost | None = None

    def start(self, host: PortsHost) -> None:
        """Begin; a call after a crash begins again."""
        self._host = host
        self._restarts += 1
        # The folder vanishes with the mount namespace of the emulation at the latest.
        self._folder = tempfile.TemporaryDirectory(dir="/run")

    def _run(self, command: list[str], **pipes: bool) -> Child:
        child = Child(command, Path(self._folder.name), **pipes)
        self._children.append(child)
        return child

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes of the host; call before `start`."""
        self._restarts = times - 1

    def crash(self) -> None:
        """Do nothing: the kernel kills the children of a host's process with it."""

    def _end(self) -> dict[str, Any]:
        """End the children, and return what went wrong with them."""
        self._failures += [failure for child in self._children if (failure := child.end())]
        if self._host is not None:
            self._folder.cleanup()
        return {"fault": "; ".join(self._failures) or None}


class ForeignBrokerProgram(_Program):
    """A foreign broker at a port of a host; it is ready when it listens, and runs as long as the host does."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__()
        self._broker = BROKERS[name]
        self._place = place

    def start(self, host: PortsHost) -> None:
        """Run the broker, and wait until it listens. UsageError if it does not."""
        super().start(host)
        where = _address(host, self._place)
        child = self._run(self._broker.command(Path(self._folder.name), where))
        child.await_port(where, self._broker.patience)

    def finished(self) -> bool:
        """Return False: it serves as long as the run goes on."""
        return False

    def result(self) -> dict[str, Any]:
        """Return what became of it."""
        return {"role": "server", "counts": {}, **self._end()}


class MosquittoPublisher(_Program):
    """Publish the messages of a plan by `mosquitto_pub`; finished some time after the broker acknowledged all of them."""

    def __init__(self, plan: MessagePlan, seed: int, broker: Place, own: Place) -> None:
        super().__init__()
        self._plan = plan
        self._seed = seed
        self._broker, self._own = broker, own
        self._room = threading.Semaphore(WINDOW)
        self._at: list[float] = []
        self._acknowledged = 0
        self._blocked = 0.0
        self._ended_at = inf

    def start(self, host: PortsHost) -> None:
        """Publish from the beginning of the plan on; after a crash what is due from then on."""
        super().start(host)
        host.later(max(self._plan.work.at, host.now), self._begin)

    def _begin(self) -> None:
        host = self._host
        assert host is not None
        topic = self._plan.work.to.removeprefix("topic:")
        command = mosquitto_pub(_address(host, self._broker), topic, _address(host, self._own)[0])
        child = self._run(command, reads=True, writes=True)
        threading.Thread(target=self._read, args=[child, host], daemon=True).start()
        threading.Thread(target=self._write, args=[child, host], daemon=True).start()

    def _is_over(self, now: float, published: int) -> bool:
        work = self._plan.work
        return (work.count is not None and published >= work.count) or (work.until is not None and now >= work.until)

    def _write(self, child: Child, host: PortsHost) -> None:
        """Write the messages when they are due and there is room."""
        work, gaps, published, due = self._plan.work, self._plan.gaps(), 0, self._plan.work.at
        if self._restarts and work.rate not in (None, inf):
            while due < host.now and not self._is_over(host.now, published):
                published, due = published + 1, due + next(gaps)
        pipe = child.process.stdin
        assert pipe is not None
        try:
            while not self._is_over(max(host.now, due), published):
                time.sleep(max(0.0, due - host.now))
                waits_from = host.now
                self._room.acquire()
                now = host.now
                self._blocked += now - waits_from
                if self._is_over(now, published):
                    break
                number = self._restarts << LIFE_SHIFT | len(self._at)
                self._at.append(now)
                pipe.write(_text_of(self._seed, self._plan.client, number, self._plan.size(number)) + b"\n")
                pipe.flush()
                published += 1
                due = now + work.think if work.think is not None else due + next(gaps)
            pipe.close()
        except BrokenPipeError:
            # The program ended; the thread that reads its output notes that.
            return

    def _read(self, child: Child, host: PortsHost) -> None:
        """Count what the broker has acknowledged, until the program ends."""
        assert child.process.stdout is not None
        for line in child.process.stdout:
            if _ACKNOWLEDGED in line:
                self._acknowledged += 1
                self._room.release()
        child.process.wait()
        self._ended_at = host.now

    def finished(self) -> bool:
        """Return whether everything was published and acknowledged, or can't be, and the time after it is over."""
        return self._host is not None and self._host.now >= self._ended_at + self._plan.work.linger

    def result(self) -> dict[str, Any]:
        """Return what was published, in the form of `PublisherProgram`."""
        accepted = [[0, self._acknowledged - 1]] if self._acknowledged else []
        life = {"life": max(self._restarts, 0), "at": list(self._at), "accepted": accepted, "expired": [], "dropped": 0}
        done = {"ended_at": self._ended_at if self.finished() else None, **self._end()}
        counts = {"messages_published": len(self._at), "messages_accepted": self._acknowledged}
        told = {"role": "publisher", "client": self._plan.client, "lives": [life], "blocked": self._blocked}
        return {**told, "counts": counts, **done}


class MosquittoSubscriber(_Program):
    """Subscribe by `mosquitto_sub`, one for each destination. A subscription is in effect from its first message on.

    `plans` are those of all publishers by their node ids; `seed` is that of the bodies.
    """

    def __init__(self, work: SubscribeWorkload, plans: Mapping[int, MessagePlan], seed: int, broker: Place, own: Place) -> None:
        super().__init__()
        self._work, self._plans, self._seed = work, plans, seed
        self._broker, self._own = broker, own
        self._rows: list[list[tuple[int, int, float]]] = [[] for _ in work.to]
        self._damaged = 0

    def start(self, host: PortsHost) -> None:
        """Subscribe and unsubscribe at the times of the workload."""
        super().start(host)
        work = self._work
        if work.until is None or work.until > host.now:
            host.later(max(work.at, host.now), self._subscribe)
            if work.until is not None:
                host.later(work.until, self._unsubscribe)

    def _subscribe(self) -> None:
        host = self._host
        assert host is not None
        for place, destination in enumerate(self._work.to):
            topic = destination.removeprefix("topic:")
            command = mosquitto_sub(_address(host, self._broker), topic, _address(host, self._own)[0])
            child = self._run(command, reads=True)
            threading.Thread(target=self._read, args=[child, self._rows[place]], daemon=True).start()

    def _unsubscribe(self) -> None:
        for child in self._children:
            child.process.terminate()

    def _read(self, child: Child, rows: list[tuple[int, int, float]]) -> None:
        assert child.process.stdout is not None
        for line in child.process.stdout:
            stamp, _, text = line.rstrip(b"\n").partition(b" ")
            client, number, _ = (*text.split(b".", 2), b"", b"")[:3]
            try:
                rows.append((int(client, 16), int(number, 16), float(stamp)))
                self._damaged += text != self._expected(*rows[-1][:2])
            except ValueError:
                self._damaged += 1

    def _expected(self, client: int, number: int) -> bytes:
        plan = self._plans.get(client)
        return b"" if plan is None else _text_of(self._seed, client, number, plan.size(number))

    def finished(self) -> bool:
        """Return True, since a run does not wait for subscribers."""
        return True

    def result(self) -> dict[str, Any]:
        """Return what was delivered, in the form of `SubscriberProgram`."""
        done = self._end()
        counts = {"messages_received": sum(map(len, self._rows))}
        subscriptions = [self._plain(number, to) for number, to in enumerate(self._work.to)]
        told = {"role": "subscriber", "subscriptions": subscriptions, "expired": [], "lost": []}
        return {**told, "damaged": self._damaged, "counts": counts, **done}

    def _plain(self, number: int, destination: str) -> dict[str, Any]:
        epoch = 0.0 if self._host is None else self._host.epoch
        rows = list(self._rows[number])
        at = [stamp - epoch for _, _, stamp in rows]
        until = self._work.until
        return {
            "number": number,
            "destination": destination,
            "selector": "",
            "wanted": [self._work.at, until],
            "spans": [[at[0], until, "" if until is None else "unsubscribed"]] if at else [],
            "delivered": {"publisher": [row[0] for row in rows], "number": [row[1] for row in rows], "at": at},
        }

"""Measurements for claims about FJM2 that no scenario shows: encoded packets, and a subscriber called directly."""

from collections.abc import Mapping

from experiments.contract.recorder import Recorder
from protocols.fjm2 import PROTOCOL, Fjm2Config
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.jms import jms_message
from protocols.machine import Group, Message
from protocols.messaging import Subscription
from protocols.norm.messages import Data, Nack
from protocols.roles import RoleContext

__all__ = ["headers_of_packets", "nacks_of_a_subscriber"]

GROUP = Group("239.0.0.1:6003")
BODY = 1000
ETHERNET_IP_UDP = 14 + 20 + 8
GRTT = 0.05


def headers_of_packets() -> Mapping[str, float]:
    """Return the bytes of headers of a packet that carries a whole message, with the payload ids of fec_id 0 and 129."""
    found = {}
    for fec in (0, 129):
        codec = PROTOCOL.codec()
        data = next(each for each in _published(Fjm2Config(fec=fec), 1) if isinstance(each, Data))
        found[f"fec_{fec}"] = float(ETHERNET_IP_UDP + len(codec.encode(data)) - BODY)
    return found


def nacks_of_a_subscriber() -> Mapping[str, float]:
    """Count the NACKs of a subscriber that misses a message: undisturbed, in its hold-off, and when one is overheard."""
    config = Fjm2Config(grtt=GRTT, robust=3)
    sent = _published(config, 5)
    lossy = [each for each in sent if not (isinstance(each, Data) and each.object_id == 1)]
    alone = _Listener(config)
    alone.hear(lossy)
    first = alone.wake_until_nack()
    assert first is not None
    due = alone.hold_off
    alone.wake_until(due - 1e-9)
    in_hold_off = len(alone.nacks) - 1
    alone.wake_until_nack()
    overhearing = _Listener(config)
    overhearing.hear(lossy)
    overhearing.hear([first])
    overhearing.wake_until(due - alone.first_backoff - 1e-9)
    complete = _Listener(config)
    complete.hear(sent)
    complete.wake_until(60 * GRTT)
    return {
        "backoffs": float(alone.steps.count("nack_backoff")),
        "in_hold_off": float(in_hold_off),
        "after_hold_off": float(len(alone.nacks) - 1 - in_hold_off),
        "overheard": float(len(overhearing.nacks)),
        "suppressed": float(overhearing.steps.count("nack_suppressed")),
        "complete": float(len(complete.nacks)),
    }


def _published(config: Fjm2Config, count: int) -> list[Message]:
    """Return what a publisher sends of some messages of one packet."""
    ports = Recorder()
    publisher = PROTOCOL.roles["publisher"].make(ports, RoleContext(config, 1, GROUP))
    assert isinstance(publisher, Fjm2Publisher)
    sender = publisher.inner
    sender.start(0.0)
    for number in range(count):
        publisher.publish(jms_message(1, number, "topic:t", body=bytes(BODY)), 0.0)
    while sender.deadline < 1.0:
        sender.wake(sender.deadline)
    return [packet.message for packet in ports.packets]


class _Listener:
    """A subscriber on recorded ports, with the steps that its trace shows."""

    def __init__(self, config: Fjm2Config) -> None:
        self.ports = Recorder()
        self.steps: list[str] = []
        self.hold_off = self.first_backoff = 0.0
        self.ports.trace = self._step
        machine = PROTOCOL.roles["subscriber"].make(self.ports, RoleContext(config, 2, GROUP))
        assert isinstance(machine, Fjm2Subscriber)
        self._receiver = machine.inner
        self._receiver.start(0.0)
        machine.subscribe(Subscription(0, "topic:t"), 0.0)
        self._now = 0.0

    @property
    def nacks(self) -> list[Nack]:
        """Its requests so far."""
        return [packet.message for packet in self.ports.packets if isinstance(packet.message, Nack)]

    def hear(self, messages: list[Message]) -> None:
        """Receive messages, now."""
        for message in messages:
            self._receiver.receive(message, "other", GROUP, self._now)

    def wake_until(self, when: float) -> None:
        """Serve all timers until a time in seconds."""
        while self._receiver.deadline <= when:
            self._now = self._receiver.deadline
            self._receiver.wake(self._now)

    def wake_until_nack(self) -> Nack | None:
        """Serve timers until the next NACK, for a minute at most, and return it."""
        before = len(self.nacks)
        while self._receiver.deadline < 60.0 and len(self.nacks) == before:
            self.wake_until(self._receiver.deadline)
        return self.nacks[-1] if len(self.nacks) > before else None

    def _step(self, name: str, detail: object) -> None:
        self.steps.append(name)
        if isinstance(detail, dict):
            self.hold_off = detail.get("silent_until", self.hold_off)
            self.first_backoff = self.first_backoff or detail.get("until", 0.0)

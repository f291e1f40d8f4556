"""A publisher of FJM2 as a program for tests: fixed messages, so that their bytes on the wire are known.

    python -m tests.emu.fjm2_node --iface eth0 --count 60

It prints a JSON object for each message with the SHA-256 of the object that it is, and a SUMMARY.
"""

import argparse
import hashlib
import json
import sys

from emu.host import UdpHost
from emu.loop import new_loop
from emu.udp_options import UdpOptions
from experiments.scenario.protocol_choice import ProtocolChoice
from protocols.fjm2 import PROTOCOL
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.jms import JmsMessage, Scalar, Typed, jms_message, write_head
from protocols.machine import Event, Group
from protocols.messaging import PublisherIdle
from protocols.rng import Rng
from protocols.roles import RoleContext

QUICK = {"rate": "8Mbit", "grtt": "20ms", "gsize": 10, "robust": 30, "fec": 129, "parity": 8, "block": 16}
SIZES = (60_000, 0, 1, 1386, 5000)
"""Bytes of bodies; a receiver takes part from the first object it hears of, so that must not be lost as a whole."""


def message(number: int) -> JmsMessage:
    """Return one of the messages; their priorities are equal, so that they keep their order."""
    size = SIZES[number % len(SIZES)]
    body = (number.to_bytes(4) * (size // 4 + 1))[:size]
    properties: dict[str, Scalar | Typed] = {"symbol": "ABB", "price": 12.5, "n": number}
    return jms_message(7, number, "topic:prices", body=body, sent_at=1000.0 + number, properties=properties, instance=3)


def main() -> int:
    """Publish, and end when all is sent."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--iface", required=True)
    parser.add_argument("--group", default="239.7.7.9:6003")
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    loop, config = new_loop(), ProtocolChoice.of("fjm2", QUICK).config
    host = UdpHost(loop, PROTOCOL.codec(), interface=options.iface, port=0, rng=Rng(1), options=UdpOptions(loopback=False))
    publisher = PROTOCOL.roles["publisher"].make(host, RoleContext(config, 7, Group(options.group), 3))
    assert isinstance(publisher, Fjm2Publisher)

    def on_event(event: Event) -> None:
        if isinstance(event, PublisherIdle):
            loop.stop()

    host.run(publisher, on_event)
    for number in range(options.count):
        sent = message(number)
        data = write_head(sent) + (sent.body or b"")
        print(json.dumps({"number": number, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}), flush=True)
        host.call(publisher.publish, sent)
    loop.run(40.0)
    print(json.dumps({"event": "SUMMARY", "counts": publisher.counts()}), flush=True)
    host.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

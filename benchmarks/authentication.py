"""Measure what authentication costs: bytes, CPU time per packet, goodput, and the refusal of packets without a valid MAC.

    python -m benchmarks.authentication [--json] [--size 32MB] [--rate 200Mbit]

A packet is a NORM_DATA with a segment of 1400 bytes. The transfer goes from one process to another over a bridge, without loss;
its CPU time is that of sender and receiver, per packet. Codecs are measured alone, on packets made before.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from mmap import mmap
from typing import Any, TypeVar

from benchmarks.norm_node import Memory
from emu.launch import emulate
from emu.requirements import check_tools
from experiments.running.program import Job, Node, ReceiverProgram, SenderProgram
from protocols.errors import UnsupportedError, WireError
from protocols.machine import Codec, Content, Group, Offer
from protocols.norm import NormCodec, NormConfig
from protocols.norm.messages import Data, Fti, Origin
from protocols.norm.wire.authentication import AuthenticatedCodec
from protocols.norm.wire.sizes import AUTH_SIZE
from protocols.registry import protocol
from topologies.generators import Star
from topologies.units import parse_rate, parse_size

__all__ = ["main", "measure_codecs", "measure_transfer"]

T = TypeVar("T")

KEY, OTHER = bytes(range(32)), bytes(32)
SEGMENT, BLOCK = 1400, 64
PACKETS, REPEATS = 2000, 7
PORT = 6003
GROUP = Group(f"239.7.7.9:{PORT}")
LONGEST = 20.0


def _codec(key: bytes = KEY) -> Codec:
    return AuthenticatedCodec(NormCodec(), {0: key}, time.time)


def measure_codecs() -> dict[str, float]:
    """Return microseconds of CPU time per packet; the best of some repetitions."""
    origin, fti = Origin(1, 1, 60, 4, 3), Fti(5, 10_000_000, SEGMENT, BLOCK, 16)
    messages = [Data(origin, i, 0, 5, 0, i // BLOCK, i % BLOCK, BLOCK, fti, bytes(SEGMENT), SEGMENT) for i in range(PACKETS)]
    plain = [NormCodec().encode(message) for message in messages]
    # A codec refuses as replayed what it has accepted.
    replayed = _codec()
    signed = [_encoded(_codec(), messages) for _ in range(REPEATS + 1)]
    for data in signed[-1]:
        replayed.decode(data)
    measured: dict[str, Callable[[int], tuple[Callable[[Any], object], Sequence[Any]]]] = {
        "encode": lambda _: (NormCodec().encode, messages),
        "encode_keyed": lambda _: (_codec().encode, messages),
        "decode": lambda _: (NormCodec().decode, plain),
        "decode_keyed": lambda turn: (_codec().decode, signed[turn]),
        "decode_skipping": lambda turn: (NormCodec().decode, signed[turn]),
        "refuse_unsigned": lambda _: (partial(_refuse, _codec()), plain),
        "refuse_forged": lambda turn: (partial(_refuse, _codec(OTHER)), signed[turn]),
        "refuse_replayed": lambda _: (partial(_refuse, replayed), signed[-1]),
    }
    return {name: round(min(_timed(*make(turn)) for turn in range(REPEATS)), 2) for name, make in measured.items()}


def _encoded(codec: Codec, messages: Sequence[Data]) -> list[bytes]:
    return [codec.encode(message) for message in messages]


def _refuse(codec: Codec, data: bytes) -> None:
    try:
        codec.decode(data)
    except WireError:
        return
    raise AssertionError("was not refused")


def _timed(work: Callable[[T], object], items: Sequence[T]) -> float:
    begin = time.process_time()
    for item in items:
        work(item)
    return (time.process_time() - begin) / len(items) * 1e6


def measure_transfer(size: int, rate: float, *, keyed: bool) -> dict[str, float]:
    """Send an object of `size` bytes at `rate` bytes per second; goodput in Mbit/s, and microseconds of CPU per packet."""
    norm = protocol("norm")
    # The path only makes packets longer here; the codec below has the key.
    config = NormConfig(rate=rate, grtt=0.005, grtt_max=0.05, gsize=10, buffer=2 * size, key_file="-" if keyed else "")
    run = emulate(
        Star(receivers=1).build(),
        {
            "sender": SenderProgram(Node(norm, config, 1, GROUP), [Job(0.0, Content(Memory(bytes(size)), b"", is_file=False))]),
            "r1": ReceiverProgram(Node(norm, config, 2, GROUP), _sink, expected=1),
        },
        codec=norm.codec,
        node_codec=_codec if keyed else None,
        port=PORT,
        duration=LONGEST,
        over=lambda finished: "r1" in finished,
        seed=1,
    )
    sender, receiver = run.nodes["sender"], run.nodes["r1"]
    result, packets = receiver.result or {}, sum(sender.packets.values())
    goodput = size / result["last_at"] * 8e-6 if result.get("received") else 0.0
    us = {f"{name}_us": round(node.cpu / packets * 1e6, 2) for name, node in (("sender", sender), ("receiver", receiver))}
    return {"goodput_mbit_s": round(goodput, 1), **us}


def _sink(offer: Offer) -> Memory:
    return Memory(mmap(-1, offer.size))


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Measure what authentication costs.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--size", type=parse_size, default=32_000_000)
    parser.add_argument("--rate", type=parse_rate, default=25e6)
    options = parser.parse_args()
    try:
        check_tools()
    except UnsupportedError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    packet = SEGMENT + 20 + 12
    found: dict[str, Any] = {
        "bytes": AUTH_SIZE,
        "share": round(AUTH_SIZE / (packet + AUTH_SIZE), 4),
        "codec_us": measure_codecs(),
        "transfer": {
            name: measure_transfer(options.size, options.rate, keyed=keyed)
            for name, keyed in (("plain", False), ("keyed", True))
        },
    }
    sys.stdout.write(json.dumps(found) + "\n" if options.json else _table(found))
    return 0


def _table(found: dict[str, Any]) -> str:
    lines = [f"{found['bytes']} bytes, {found['share']:.1%} of a packet with {SEGMENT} bytes of content", ""]
    lines += [f"{name:18} {value:6.2f} us" for name, value in found["codec_us"].items()]
    for name, row in found["transfer"].items():
        cpu = f"CPU per packet {row['sender_us']} + {row['receiver_us']} us"
        lines.append(f"{'transfer ' + name:18} {row['goodput_mbit_s']:6.1f} Mbit/s, {cpu}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

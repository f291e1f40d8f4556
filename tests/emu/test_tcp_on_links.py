"""A flow of the kernel's TCP stays below the rate of every kind of emulated link, and fills it."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from emu.launch import emulate
from protocols.tcp.options import TcpOptions
from tests.emu.flows import Filling, Measuring
from tests.emu.number_protocol import PORT, NumberCodec
from topologies.addressing import host_address
from topologies.generators import AnyTopology

pytestmark = [pytest.mark.emu, pytest.mark.timed]

BUILD: TypeAdapter[Any] = TypeAdapter(AnyTopology)
STAR = {"kind": "star", "receivers": 1}


def goodput(topology: dict[str, Any], options: TcpOptions | None = None) -> float:
    """Run one flow for a second and a half, and return its goodput in bits per second."""
    built = BUILD.validate_python(topology).build()
    sender, receiver = built.hosts
    run = emulate(
        built,
        {sender: Filling((host_address(built, receiver), PORT)), receiver: Measuring(1.5)},
        codec=NumberCodec,
        port=PORT,
        duration=10,
        over=lambda finished: receiver in finished,
        seed=1,
        tcp=options,
    )
    assert all(node.error is None for node in run.nodes.values()), run.nodes
    result = run.nodes[receiver].result
    assert result is not None
    return 8.0 * float(result["goodput"])


@pytest.mark.parametrize(
    "link",
    [
        {"rate": "10Mbit", "queue": 100},
        {"rate": "10Mbit", "queue": 100, "overhead": "ethernet"},
        {"rate": "10Mbit", "delay": "5ms", "queue": 100},
        {"rate": "10Mbit", "delay": "5ms", "queue": 20},
    ],
    ids=["bucket", "bucket with a size table", "user space", "user space, short queue"],
)
def test_a_flow_fills_a_link_and_is_not_faster(link: dict[str, Any]) -> None:
    found = goodput({**STAR, "link": link})
    share = 1448 / (1538 if "overhead" in link else 1514)
    # A bucket is full at first: 12,500 bytes.
    assert 0.8 * share * 10e6 < found <= 1.01 * share * 10e6


def test_a_flow_through_a_router_fills_its_slowest_link() -> None:
    link = {"rate": "10Mbit", "queue": 100}
    links = [{"ends": ["a", "g"], **link, "rate": "50Mbit"}, {"ends": ["g", "b"], **link}]
    found = goodput({"kind": "graph", "nodes": {"a": {}, "b": {}, "g": {"kind": "router"}}, "links": links})
    assert 0.8 * 9.56e6 < found < 1.01 * 9.56e6

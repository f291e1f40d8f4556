"""Capacity of Ethernet, of a single-MAC router, of a slow host, of FJM2 and its encoding publisher, and of unicast fan-out.

Packets are sent faster than the bottleneck forwards them, over the simulator's links, routers and hosts. The rate is measured
between arrivals while the bottleneck is busy. The measurements are deterministic.
"""

from collections.abc import Mapping
from typing import Any

from experiments.running.run import run
from experiments.scenario.scenario import parse
from experiments.validation.references import Families, Measured, Reference
from experiments.validation.testbed import PassiveListener, ignore
from protocols.cross import PacedSource, constant
from protocols.machine import Address, Group
from sim.network import Network
from topologies.inline import Inline

__all__ = ["FAMILIES"]

GROUP = Group("ethernet")
DATAGRAMS = 1000
ETHERNET = 100_000_000
FRAMED = {"rate": ETHERNET, "overhead": "ethernet"}


def _arrivals(nodes: dict[str, Any], links: list[dict[str, Any]], size: int, gap: float, *to: Address) -> list[list[float]]:
    """Return arrival times in seconds at each host b*; one datagram is sent to each of `to` every `gap` seconds."""
    network = Network(Inline.model_validate({"nodes": nodes, "links": links}).build(), seed=1)
    names = [name for name in network.topology.hosts if name.startswith("b")]
    listeners = [PassiveListener(network.host(name), GROUP, lambda message: True) for name in names]
    for name, listener in zip(names, listeners, strict=True):
        network.host(name).run(listener, ignore)
    end = gap * DATAGRAMS
    for number, target in enumerate(to):
        host = network.host(f"a{number + 1}")
        host.run(PacedSource(host, number, target, size, constant(gap), 0.0, end), ignore)
    network.run(until=end)
    return [[when for when, _ in listener.received] for listener in listeners]


def _rate(times: list[float]) -> float:
    """Return datagrams per second between the first and the last arrival."""
    return (len(times) - 1) / (times[-1] - times[0])


def _limit(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure a saturated link, and a single-MAC router between two links that are not saturated."""
    del effort
    size = payload = reference.params["payload"]
    gap = 0.9 * 8 * (size + 66) / ETHERNET
    (direct,) = _arrivals({"a1": {}, "b": {}}, [{"ends": ["a1", "b"], **FRAMED}], size, gap, GROUP)
    found = {"goodput_bps": 8 * payload * _rate(direct), "wire_bytes": ETHERNET / 8 / _rate(direct)}
    found["datagrams_per_s"] = _rate(direct)
    router = {"kind": "router", "mac": "single", "duplex": "half", "rate": ETHERNET}
    chain = [{"ends": ["a1", "g"]}, {"ends": ["g", "b"]}]
    (routed,) = _arrivals({"a1": {}, "g": router, "b": {}}, chain, size, gap, GROUP)
    found["single_mac_vlan_bps"] = 8 * payload * _rate(routed)
    return {name: Measured(value) for name, value in found.items() if name in reference.values}


def _overrun(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the loss of a host whose processor handles `service` datagrams per unit of time while `arrival` arrive."""
    del effort
    host = {"cpu": f"{1e-3 / reference.params['service']}s", "buffer": "1kB"}
    gap = 1e-3 / reference.params["arrival"]
    (times,) = _arrivals({"a1": {}, "b": host}, [{"ends": ["a1", "b"]}], 100, gap, GROUP)
    # Use the second half, when the buffer is full.
    later = [when for when in times if when > gap * DATAGRAMS / 2]
    return {"value": Measured(1 - _rate(later) * gap)}


def _message_rate(protocol: dict[str, Any], size: int, count: int) -> float:
    """Return the messages per second, in a busy time, that FJM2 carries over a link of 100 Mbit/s whose queue drops nothing."""
    publish = {"kind": "publish", "hosts": ["a"], "to": "topic:t", "size": size, "rate": "saturated", "at": "500ms"}
    written = {
        "name": "fjm2",
        "topology": {"kind": "graph", "nodes": {"a": {}, "b": {}}, "links": [{"ends": ["a", "b"], **FRAMED}]},
        "protocol": {"name": "fjm2", "grtt": "20ms", **protocol},
        "workload": [publish | {"count": count}, {"kind": "subscribe", "hosts": ["b"], "to": "topic:t"}],
    }
    (got,) = run(parse(written, "fjm2")).plain()["messages"]["subscriptions"]
    return float((got["delivered"] - 1) / (got["last_at"] - got["first_at"]))


def _fjm2_limit(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure FJM2 with messages of one packet, faster than the link, which has a queue without limit."""
    del effort
    payload, header = reference.params["payload"], reference.params["extra_header"]
    # NORM has 36 bytes of the header; the others are those of the message, and of the topic "t".
    rate = _message_rate({"rate": "110Mbit", "segment": payload + header - 36}, payload, DATAGRAMS)
    found = {"goodput_bps": 8 * payload * rate, "wire_bytes": ETHERNET / 8 / rate}
    return {name: Measured(value) for name, value in found.items()}


def _coding(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure an FJM2 publisher whose processor encodes every message, with as many parity symbols as source symbols."""
    del effort
    size, needed = reference.params["message_bytes"], reference.params["encode_ms"] / 1e3
    symbol, head = reference.params["symbol"], 16
    count = -(-size // symbol)
    coder = {"fec": 2, "fec_m": 16, "block": count, "parity": count, "encode": needed / (count * count * symbol)}
    rate = _message_rate({"rate": "95Mbit", "segment": symbol, **coder}, size - head, 200)
    # The thesis equates 200 messages of 64 KByte per second with 100 Mbit/s.
    found = {"messages_per_s": rate, "mbit_decimal": rate * size * 8 / 1e6, "mbit_thesis_scale": 100 * rate / 200}
    return {name: Measured(value) for name, value in found.items()}


def _fan_out(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Compare what each subscriber gets from FJM2 by multicast and from a broker that sends it a copy, over the same link."""
    del effort
    receivers = reference.params["receivers"]
    # A message of 8 kB and its head are 6 packets, 8232 bytes of UDP payload and 8400 on the link: this fills it to 99.5 %.
    multicast = _goodput({"name": "fjm2", "rate": "9.75Mbit", "grtt": "20ms"}, {}, receivers)
    broker = _goodput({"name": "broker", "queue": 4, "window": 8}, {"m": {"role": "broker"}}, receivers)
    return {"value": Measured(multicast / broker)}


def _goodput(protocol: dict[str, Any], nodes: dict[str, Any], receivers: int) -> float:
    """Return the goodput of each subscriber in Mbit/s when one host publishes as fast as its link of 10 Mbit/s allows."""
    links = [{"ends": ["m", "s"], "rate": "10Mbit", "queue": 100}, {"ends": ["s", "r"], "rate": "100Mbit"}]
    topology = {"kind": "graph", "nodes": {"m": {}, "s": {"kind": "switch"}, "r": {"count": receivers}}, "links": links}
    publish = {"kind": "publish", "hosts": ["m"], "to": "topic:t", "size": "8kB", "rate": "saturated", "at": "500ms"}
    written = {
        "name": "fanout",
        "topology": topology,
        "protocol": protocol,
        "nodes": nodes,
        "connections": {"buffer": "64kB"},
        "workload": [publish | {"until": f"{5 + receivers}s"}, {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"}],
    }
    return float(run(parse(written, "fanout")).metrics["goodput_mbit_s"])


FAMILIES: Families = {
    "eth_limit": _limit,
    "fjm2_limit": _fjm2_limit,
    "overrun": _overrun,
    "fjm2_fec_cap": _coding,
    "fanout": _fan_out,
}

"""Random scenarios for tests: any protocol, network, faults and cross traffic, which follow from a number."""

from random import Random
from typing import Any

from pydantic import TypeAdapter

from experiments.scenario.scenario import Scenario, parse
from experiments.search.plans import Targets, random_plan
from protocols.errors import ConfigError
from protocols.rng import Rng, key_of
from topologies.generators import AnyTopology

__all__ = ["random_scenario"]

Values = dict[str, Any]

FILES = ("norm", "norm", "norm", "a", "n1", "n2", "srm")
MESSAGES = ("norm", "fjm2", "fjm2", "distributor", "bus", "datagram", "relay", "broker", "fjm")
SERVERS = {"relay": "relay", "broker": "broker", "fjm": "manager"}
NORM: dict[str, tuple[Any, ...]] = {
    "rate": ("500kbit", "2Mbit", "20Mbit"),
    "segment": (100, 512, 1400),
    "block": (1, 4, 20),
    "grtt": (0.005, 0.05, 0.25),
    "robust": (1, 4, 20),
    "probing": ("active", "passive", "none"),
    "backoff": (0, 1, 4),
    "gsize": (1, 10, 100_000),
    "cache_min": (1, 2),
    "flow": (0.1, 2.0),
    "repair": ("gathered", "immediate", "immediate-once"),
    "cache_age": (0.0, 0.05),
    "window": (1, 2, 8),
    "expire": (0.0, 0.1),
    "senders": (1, 2, 10),
    "repair_share": (0.05, 1.0),
    "join": ("beginning", "middle", "end", "all"),
    "feedback": ("multicast", "unicast", "none"),
    "buffer": (0, 500, 3000),
}
ARQ: dict[str, tuple[Any, ...]] = {
    "rate": ("1Mbit", "5Mbit"),
    "segment": (100, 1400),
    "timeout": (0.01, 0.25),
    "robust": (1, 5),
    "keep": (1, 2, 5),
}
PARAMETERS: dict[str, dict[str, tuple[Any, ...]]] = {
    "norm": {**NORM, "parity": (0, 2, 16), "fti": ("always", "info"), "congestion": ("none", "norm")},
    "fjm2": {**NORM, "queue": (1, 10), "pool": (12_000, 40_000), "order": ("none", "fifo")},
    "a": ARQ,
    "n1": {**ARQ, "gather": (0.0, 0.05), "hold": (0.0, 0.2)},
    "n2": {**ARQ, "gather": (0.0, 0.05), "hold": (0.0, 0.2), "window": (0.0, 0.2)},
    "srm": {**ARQ, "cache": (0, 10), "peers": (1, 5), "timers": ("adaptive", "fixed")},
    "distributor": {"rate": ("1Mbit", "5Mbit"), "segment": (200, 1400), "cache": (0, 20_000), "retries": (0, 3)},
    "bus": {"segment": (200, 1400), "cost": (0.001, 0.01), "history": (0.05, 1.0), "ahead": (1, 100)},
    "fjm": {"segment": (200, 1400), "history": (0.05, 1.0)},
    "datagram": {"segment": (100, 1400), "cast": ("multicast", "unicast"), "incomplete": (1, 64)},
    "relay": {"window": (1, 64), "queue": (1, 64), "clients": (2, 100)},
    "broker": {"window": (1, 64), "queue": (1, 64), "clients": (2, 100)},
}
LOSSES: tuple[Any, ...] = (
    "0%",
    "5%",
    "20%",
    {"model": "content", "p": "10%"},
    {"model": "gilbert-elliott", "burst": 3, "gap": 20},
    {"model": "periodic", "every": 7, "shift": True},
)
DELAYS: tuple[Any, ...] = (
    "0s",
    "0s",
    "1ms",
    "5ms",
    "20ms",
    {"model": "uniform", "least": "1ms", "most": "8ms", "order": "free"},
)
RATES: tuple[str | None, ...] = (None, "2Mbit", "10Mbit", "100Mbit")
QUEUES: tuple[Any, ...] = (
    1,
    20,
    {"model": "droptail", "bytes": "20kB"},
    {"model": "red", "least": 2, "most": 8, "ecn": True},
    {"model": "codel", "packets": 30},
    {"model": "token-bucket", "burst": "10kB"},
    {"model": "priority", "packets": 10},
)
IMPAIRMENTS: tuple[Values, ...] = ({"duplicate": "5%"}, {"corrupt": "3%"}, {"mtu": 300}, {"overhead": "ethernet"})
NODES: tuple[Values, ...] = (
    {"s1": {"hub": True, "rate": "10Mbit", "queue": 20}},
    {"s1": {"kind": "router", "cpu": "100us"}},
    {"s1": {"kind": "router", "mac": "single", "rate": "10Mbit", "duplex": "half", "queue": 20}},
    {"s1": {"storm": "2Mbit", "burst": "20kB"}},
    {"s1": {"pause": True}},
    {"sender": {"cpu": "200us", "cpu_send": "100us"}},
    {"sender": {"cpu": "1ms", "fifo": True, "buffer": "5kB"}},
    {"r": {"cpu": "100us"}},
    {"r": {"cpu": "1ms", "buffer": "5kB", "pause": True}},
)
WHEN: tuple[Values, ...] = (
    {"rate": "saturated"},
    {"rate": "200/s"},
    {"rate": "200/s", "arrivals": "poisson"},
    {"think": "5ms"},
)
TAKES_PART: tuple[Values, ...] = ({}, {}, {}, {"at": "100ms"}, {"until": "300ms"}, {"slow": "2ms", "room": 8}, {"clients": 2})


def random_scenario(number: int) -> Scenario:
    """Return the scenario with this number; the first that is allowed of those that follow from it."""
    draw = Random(number)
    while True:
        try:
            return parse(_written(draw), f"random scenario {number}")
        except ConfigError:
            continue


def _written(draw: Random) -> Values:
    carries_files = draw.random() < 0.5
    name = draw.choice(FILES if carries_files else MESSAGES)
    topology = _topology(draw)
    built = TypeAdapter(AnyTopology).validate_python(topology).build()
    hosts = list(built.hosts)
    server = {draw.choice(hosts): {"role": SERVERS[name]}} if name in SERVERS else {}
    others = [host for host in hosts if host not in server]
    known = PARAMETERS[name]
    chosen = draw.sample(sorted(known), draw.randint(0, min(len(known), 6)))
    targets = Targets(servers=tuple(server))
    return {
        "name": "random",
        "seed": draw.randrange(1 << 32),
        "topology": topology,
        "protocol": {"name": name, **{key: draw.choice(known[key]) for key in chosen}},
        "nodes": server,
        "workload": _files(draw, others)
        if carries_files
        else _messages(draw, others, "/t" if name == "distributor" else "topic:t"),
        "receivers": _receivers(draw, hosts) if carries_files else [],
        "traffic": _traffic(draw, hosts),
        "faults": random_plan(Rng(key_of(draw.randrange(1 << 32), "faults")), built, 1.0, targets)
        if draw.random() < 0.5
        else [],
        "connections": draw.choice(({}, {}, {"control": "reno-linux", "mss": 300, "buffer": "4kB"}, {"nagle": False})),
        "statistics": draw.choice([None, "300ms"]),
        "duration": "3s",
    }


def _link(draw: Random) -> Values:
    down, up = {"loss": draw.choice(LOSSES)}, {"loss": draw.choice(("0%", "0%", "5%"))}
    queue = draw.choice(QUEUES) if draw.random() < 0.5 else None
    impairment = draw.choice(IMPAIRMENTS) if draw.random() < 0.2 else {}
    return {"rate": draw.choice(RATES), "delay": draw.choice(DELAYS), "queue": queue, "down": down, "up": up, **impairment}


def _topology(draw: Random) -> Values:
    link, trunk = _link(draw), _link(draw)
    counted = [{"ends": ["sender", "s1"], **trunk}, {"ends": ["s1", "q"], **trunk}, {"ends": ["s1", "r"], **link}]
    shape: Values = draw.choice(
        (
            {"kind": "lan", "receivers": draw.randint(2, 12), "link": link},
            {"kind": "star", "receivers": draw.randint(2, 12), "link": link, "trunk": trunk},
            {"kind": "tree", "depth": 2, "fanout": 2, "receivers": draw.randint(1, 3), "link": link, "trunk": trunk},
            {"kind": "wan", "sites": 2, "receivers": draw.randint(1, 3), "lan": link, "wan": trunk},
            {"kind": "waxman", "switches": 4, "seed": draw.randrange(100), "link": link, "trunk": trunk},
            {
                "kind": "graph",
                "nodes": {"r": {"count": draw.randint(4, 9)}, "q": {"count": 2}, "sender": {}, "s1": {}},
                "links": counted,
            },
        )
    )
    nodes = {name: {**shape.get("nodes", {}).get(name, {}), **model} for name, model in draw.choice(NODES).items()}
    given = {**shape.get("nodes", {}), **(nodes if draw.random() < 0.3 else {})}
    return {
        **shape,
        **({"nodes": given} if given else {}),
        "multicast": draw.choice(({}, {}, {"join": "30ms", "leave": "100ms"}, {"pruning": False})),
    }


def _files(draw: Random, others: list[str]) -> list[Values]:
    sizes = (0, 1, 1400, 20_000, 60_000)
    return [
        {
            "from": draw.choice(["sender", "sender", draw.choice(others)]),
            "size": draw.choice(sizes),
            "at": draw.choice(["0s", "200ms"]),
        }
        for _ in range(draw.randint(1, 3))
    ]


def _messages(draw: Random, others: list[str], to: str) -> list[Values]:
    def publish() -> Values:
        size, count = draw.choice((0, 300, 3000, {100: 3, 2000: 1})), draw.randint(1, 60)
        when, more = draw.choice(WHEN), draw.choice(({}, {}, {"expires": "100ms"}, {"priority": {0: 1, 4: 2, 9: 1}}))
        begin = {"at": draw.choice(("0s", "0s", "100ms")), "linger": draw.choice(("0s", "1s", "1s"))}
        return {
            "kind": "publish",
            "hosts": [draw.choice(others)],
            "to": to,
            "size": size,
            "count": count,
            **when,
            **more,
            **begin,
        }

    subscribers = draw.sample(others, min(draw.randint(1, 6), len(others)))
    subscribe = [{"kind": "subscribe", "hosts": [host], "to": to, **draw.choice(TAKES_PART)} for host in subscribers]
    return [*(publish() for _ in range(draw.randint(1, 2))), *subscribe]


def _receivers(draw: Random, hosts: list[str]) -> list[Values]:
    times = draw.choice(({"join": "100ms"}, {"leave": "150ms"}, {"join": "100ms", "leave": "400ms"}))
    return [{"hosts": [draw.choice(hosts)], **times}] if draw.random() < 0.2 else []


def _traffic(draw: Random, hosts: list[str]) -> list[Values]:
    source, sink = draw.sample(hosts, 2)
    flow = draw.choice(
        ({"kind": "aimd"}, {"kind": "tcp"}, {"kind": "poisson", "rate": "1Mbit"}, {"kind": "on-off", "rate": "3Mbit"})
    )
    return [{**flow, "from": source, "to": sink, "end": "1s"}] if draw.random() < 0.4 else []

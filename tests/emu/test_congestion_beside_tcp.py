"""NORM with congestion control shares an emulated bottleneck with the kernel's TCP."""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import mean
from typing import Any

import pytest

from emu.namespaces import run_isolated
from tests.emu.lab import Lab
from topologies.addressing import host_address
from topologies.inline import Inline

pytestmark = [pytest.mark.emu, pytest.mark.slow, pytest.mark.timed]

ADDRESS = "239.7.7.14"
SECONDS, WARM = 24.0, 10.0
RATE = 4e6
CONTROLS = ("cubic", "reno")
NORM = [sys.executable, "-m", "benchmarks.norm_node"]
TCP = [sys.executable, "-m", "tests.emu.tcp_flow"]


def _run(control: str) -> tuple[float, float]:
    """Return the goodput of NORM and of TCP behind the same bottleneck, in bits per second."""
    hosts = {"sender": "s1", "x1": "s1", "r1": "s2", "y1": "s2"}
    links: list[dict[str, Any]] = [{"ends": [host, switch]} for host, switch in hosts.items()]
    links.append({"ends": ["s1", "s2"], "rate": "4Mbit", "delay": "20ms", "queue": 30})
    nodes: dict[str, Any] = {"sender": {}, "x1": {}, "r1": {}, "y1": {}, "s1": {"kind": "switch"}, "s2": {"kind": "switch"}}
    topology = Inline.model_validate({"kind": "graph", "nodes": nodes, "links": links}).build()
    lab = Lab(topology)
    where = ["--addr", ADDRESS, "--timeout", str(SECONDS + 1), "--congestion", "norm", "--fair-to", control]
    norm = lab.start("r1", [*NORM, "recv", *where, "--iface", lab.device("r1"), "--expect", "9"])
    tcp = lab.start("y1", [*TCP, "recv", "5001", str(SECONDS)])
    lab.await_join("r1", ADDRESS)
    what = ["--sizes", "40000000", "--parity", "0", "--grtt", "0.1", "--gsize", "10"]
    lab.start("sender", [*NORM, "send", *where, "--iface", lab.device("sender"), *what])
    lab.start("x1", [*TCP, "send", "5001", str(SECONDS), host_address(topology, "y1"), control])
    return _norm_goodput(lab.end(norm)), _tcp_goodput(lab.end(tcp))


def _norm_goodput(rows: list[dict[str, Any]]) -> float:
    states = [row for row in rows if row["event"] == "CONGESTION"]
    return 8.0 * mean(float(row["receive_rate"]) for row in states if WARM < row["t"] - states[0]["t"] < SECONDS - 1)


def _tcp_goodput(rows: list[dict[str, Any]]) -> float:
    told = [row for row in rows if row["event"] == "RECEIVED"]
    since = [row for row in told if WARM < row["t"] - told[0]["t"] < SECONDS - 1]
    return 8 * float((since[-1]["octets"] - since[0]["octets"]) / (since[-1]["t"] - since[0]["t"]))


def test_norm_and_the_kernels_tcp_share_a_bottleneck() -> None:
    # In two networks at the same time, which mostly wait.
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda control: run_isolated(partial(_run, control)), CONTROLS))
    for control, (norm, tcp) in zip(CONTROLS, found, strict=True):
        assert 0.5 < norm / tcp < 2.0, control
        # Headers are 3 to 5 %.
        assert 0.75 * RATE < norm + tcp < 1.05 * RATE, control

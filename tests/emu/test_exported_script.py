"""The exported Mininet script of a topology runs in Mininet."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from emu.namespaces import run_isolated
from topologies.exports import mininet_script
from topologies.generators import Inline

LINKS = ("sender west", "near west", "west east", "east lan", "lan r")


def bring_up(path: Path) -> dict[str, Any]:
    from mininet.log import setLogLevel
    from mininet.net import Mininet
    from mininet.nodelib import LinuxBridge

    setLogLevel("critical")
    script = runpy.run_path(str(path))
    net = Mininet(script["Written"](), switch=LinuxBridge, controller=None)
    net.start()
    script["prepare"](net)
    sender = net["sender"]
    answers = {
        host.name: sender.cmd(f"ping -c 3 -i 0.2 -W 5 {host.IP()}") for host in net.hosts if host.IP() and host is not sender
    }
    return {name: "3 received" in text for name, text in answers.items()}


@pytest.mark.emu
def test_hosts_of_an_exported_network_reach_each_other_through_switches_and_routers(tmp_path: Path) -> None:
    topology = Inline.model_validate(
        {
            "kind": "graph",
            "nodes": {
                "sender": {},
                "west": {"kind": "router"},
                "east": {"kind": "router"},
                "lan": {"kind": "switch"},
                "r": {"count": 2},
                "near": {},
            },
            "links": [{"ends": tuple(ends.split())} for ends in LINKS],
        }
    ).build()
    path = tmp_path / "sites.py"
    path.write_text(mininet_script(topology, "sites", str(path))[0], encoding="utf-8")
    assert run_isolated(lambda: bring_up(path)) == {"r1": True, "r2": True, "near": True}

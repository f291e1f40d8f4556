"""Export of a topology as a Mininet script that is independent of this project."""

from collections.abc import Callable
from pathlib import PurePath

from topologies.exports.devices import Device, Lab, lab_of, router_settings
from topologies.spec import Topology

__all__ = ["mininet_script"]

_BEGIN = '''"""{title} as a Mininet script.

sudo python {file}                                   starts the network with its impairments and opens Mininet's prompt
mn --custom {file} --topo written --switch lxbr --controller none      the same nodes without delays, rates and losses
"""

from mininet.cli import CLI
from mininet.net import Mininet
from mininet.node import Node
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo


class Router(Node):
    """A router with a route per host and proxy ARP."""

    def config(self, **params):
        super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")


class Written(Topo):
    """The nodes and links."""

    def build(self):
'''
_END = '''

def prepare(net):
    """Configure routes and multicast, before links are impaired."""
    for node, commands in PREPARE.items():
        for command in commands:
            net[node].cmd(command)


def impair(net):
    """Apply rates, delays and losses; exits if the kernel rejects a command."""
    for node, commands in IMPAIR.items():
        for command in commands:
            said = net[node].cmd(command)
            if said.strip():
                raise SystemExit(f"{node}: {command}: {said.strip()}")


topos = {"written": Written}

if __name__ == "__main__":
    net = Mininet(Written(), switch=LinuxBridge, controller=None)
    net.start()
    try:
        prepare(net)
        impair(net)
        CLI(net)
    finally:
        net.stop()
'''


def mininet_script(topology: Topology, title: str, file: str) -> tuple[str, list[str]]:
    """Return the text of the script `file`, and notes on attributes that can't be exported."""
    lab = lab_of(topology)
    lines = [_node(device, number) for number, device in enumerate(lab.devices.values(), 1)]
    for (near, _), (far, _) in lab.wires:
        lines.append(f"self.addLink({lab.devices[near].name!r}, {lab.devices[far].name!r})")
    body = "".join(f"        {line}\n" for line in lines)
    tables = f"\n\nPREPARE = {_table(_prepare, lab)}\nIMPAIR = {_table(_impair, lab)}\n"
    missing = "".join(f"# Not exported: {text}\n" for text in lab.missing)
    title = title.replace("\\", "/").replace('"', "'")
    return missing + _BEGIN.format(title=title, file=PurePath(file).name) + body + tables + _END, lab.missing


def _node(device: Device, number: int) -> str:
    called = "" if device.name == device.real else f"  # {device.real}"
    if device.kind == "host":
        return f"self.addHost({device.name!r}, ip={device.prefix!r}){called}"
    if device.kind == "switch":
        return f"self.addSwitch({device.name!r}, dpid='{number:x}'{', stp=True' if device.spanning_tree else ''}){called}"
    return f"self.addNode({device.name!r}, cls=Router, ip=None){called}"


def _prepare(device: Device) -> list[str]:
    first = f"{device.name}-eth0"
    if device.kind == "host":
        return [f"ip route replace 224.0.0.0/4 dev {first}"]
    if device.kind == "switch":
        return [f"echo 0 > /sys/class/net/{device.name}/bridge/multicast_snooping"]
    found = [f"ip address replace {device.address}/32 dev lo"]
    for port in device.ports:
        name = f"{device.name}-eth{port.number}"
        found += [f"sysctl -w {setting}" for setting in router_settings(name)]
    return found + [f"ip route replace {address}/32 dev {device.name}-eth{at}" for address, at in device.routes.items()]


def _impair(device: Device) -> list[str]:
    # Switches number their ports from 1.
    first = device.kind == "switch"
    return [command for port in device.ports for command in port.netem(f"{device.name}-eth{port.number + first}").commands]


def _table(of: Callable[[Device], list[str]], lab: Lab) -> str:
    """Return a dictionary of commands by device as source text, one command per line."""
    lines = []
    for device in lab.devices.values():
        commands = of(device)
        if commands:
            lines += [f"    {device.name!r}: [", *(f"        {command!r}," for command in commands), "    ],"]
    return "\n".join(["{", *lines, "}"]) if lines else "{}"

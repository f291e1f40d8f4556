"""Export of a topology as a Kathará lab: a device per node, a collision domain per link, a startup script per device."""

from topologies.exports.devices import Device, lab_of, router_settings
from topologies.spec import Topology

__all__ = ["kathara_lab"]


def kathara_lab(topology: Topology, title: str) -> tuple[dict[str, str], list[str]]:
    """Return the files of the lab by name, and notes on attributes that can't be exported."""
    lab = lab_of(topology)
    quoted = title.replace('"', "'").replace("\n", " ")
    lines = [f'LAB_NAME="{quoted}"', *(f"# Not exported: {text}" for text in lab.missing)]
    files = {}
    for device in lab.devices.values():
        if device.name != device.real:
            lines.append(f"# {device.name} is {device.real}")
        lines += [f'{device.name}[{port.number}]="w{port.wire}"' for port in device.ports]
        files[f"{device.name}.startup"] = "\n".join(_startup(device)) + "\n"
    return {"lab.conf": "\n".join(lines) + "\n", **files}, lab.missing


def _startup(device: Device) -> list[str]:
    ports = [f"eth{port.number}" for port in device.ports]
    if device.kind == "host":
        lines = [f"ip address add {device.prefix} dev eth0", "ip link set eth0 up", "ip route replace 224.0.0.0/4 dev eth0"]
    elif device.kind == "switch":
        spanning_tree = " stp_state 1" if device.spanning_tree else ""
        lines = [f"ip link add br0 type bridge mcast_snooping 0{spanning_tree}", "ip link set br0 up"]
        lines += [f"ip link set {name} master br0 up" for name in ports]
    else:
        lines = ["sysctl -w net.ipv4.ip_forward=1", f"ip address replace {device.address}/32 dev lo"]
        for name in ports:
            lines += [f"ip link set {name} up", *(f"sysctl -w {setting}" for setting in router_settings(name))]
        lines += [f"ip route replace {address}/32 dev eth{at}" for address, at in device.routes.items()]
    return lines + [command for port, name in zip(device.ports, ports, strict=True) for command in port.netem(name).commands]

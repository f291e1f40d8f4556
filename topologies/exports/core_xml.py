"""Export of a topology as a scenario file of CORE, the Common Open Research Emulator (version 7 and later)."""

from math import inf
from xml.etree import ElementTree

from protocols.errors import ConfigError
from topologies.addressing import PREFIX_LENGTH
from topologies.channels import Bernoulli, Perfect
from topologies.exports.devices import Device, Lab, lab_of
from topologies.spec import LinkSpec, Topology

__all__ = ["core_xml"]

_COLUMNS, _STEP = 8, 100


def core_xml(topology: Topology, title: str) -> tuple[str, list[str]]:
    """Return the text of the file, and notes on attributes that can't be exported. ConfigError for a router, and for a loop.

    CORE routers need a subnet per link, whereas here all hosts are in one. Its switches have no spanning tree protocol.
    """
    lab = lab_of(topology)
    for device in lab.devices.values():
        if device.kind == "router":
            raise ConfigError(f"node {device.real}: kind router is not allowed in a CORE export; host or switch")
        if device.spanning_tree:
            raise ConfigError(f"node {device.real}: a loop of switches is not allowed in a CORE export; a tree")
    missing = list(lab.notes)
    root = ElementTree.Element("scenario", name=title)
    networks, devices = ElementTree.SubElement(root, "networks"), ElementTree.SubElement(root, "devices")
    numbers = {real: number for number, real in enumerate(lab.devices, 1)}
    for real, device in lab.devices.items():
        _node(networks if device.kind == "switch" else devices, device, numbers[real])
    links = ElementTree.SubElement(root, "links")
    for wire in lab.wires:
        missing += _link(links, lab, numbers, wire)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n", missing


def _node(parent: ElementTree.Element, device: Device, number: int) -> None:
    kind = "SWITCH" if device.kind == "switch" else "PC"
    name = "network" if device.kind == "switch" else "device"
    node = ElementTree.SubElement(parent, name, id=str(number), name=device.name, icon="", canvas="1", type=kind)
    row, column = divmod(number - 1, _COLUMNS)
    ElementTree.SubElement(node, "position", x=f"{(column + 1) * _STEP}.0", y=f"{(row + 1) * _STEP}.0")


def _link(
    links: ElementTree.Element, lab: Lab, numbers: dict[str, int], wire: tuple[tuple[str, int], tuple[str, int]]
) -> list[str]:
    """Add one link for both directions if they are equal, else one for each; returns notes on what can't be exported."""
    (near, out), (far, into) = wire
    down, up = lab.devices[near].ports[out], lab.devices[far].ports[into]
    link = ElementTree.SubElement(links, "link", node1=str(numbers[near]), node2=str(numbers[far]))
    for tag, real, port in (("iface1", near, out), ("iface2", far, into)):
        device = lab.devices[real]
        if device.address is not None:
            name = f"eth{port}"
            mask = str(PREFIX_LENGTH)
            ElementTree.SubElement(link, tag, id=str(port), name=name, ip4=device.address, ip4_mask=mask)
    same = down.spec == up.spec
    _options(link, down.spec, one_way=not same)
    if not same:
        back = ElementTree.SubElement(links, "link", node1=str(numbers[far]), node2=str(numbers[near]))
        _options(back, up.spec, one_way=True)
    return [f"link {port.link}: {text}" for port in (down, up) for text in _beyond(port.spec)]


def _options(link: ElementTree.Element, spec: LinkSpec, *, one_way: bool) -> None:
    loss = spec.loss.p if isinstance(spec.loss, Bernoulli) else 0.0
    wanted = {
        "delay": round(spec.delay * 1e6),
        "bandwidth": 0 if spec.rate == inf else round(spec.rate * 8),
        "loss": f"{loss * 100:.6g}",
        "dup": f"{spec.duplicate * 100:.6g}",
        "jitter": 0,
        "unidirectional": int(one_way),
        "buffer": 0 if spec.queue is None else spec.queue,
    }
    ElementTree.SubElement(link, "options", {key: str(value) for key, value in wanted.items()})


def _beyond(spec: LinkSpec) -> list[str]:
    found = [] if isinstance(spec.loss, (Perfect, Bernoulli)) else [f"loss {getattr(spec.loss, 'model', spec.loss)}"]
    found += [name for name in ("discipline", "jitter", "mtu") if getattr(spec, name) is not None]
    found += [name for name in ("corrupt", "bit_errors") if getattr(spec, name)]
    return [f"{what} can't be exported" for what in found]

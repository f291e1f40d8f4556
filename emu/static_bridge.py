"""A Mininet switch for networks with loops: a Linux bridge that forwards only what it has entries for."""

from typing import Any

from mininet.nodelib import LinuxBridge

from emu.requirements import run

__all__ = ["StaticBridge"]


class StaticBridge(LinuxBridge):  # type: ignore[misc]
    """A bridge that neither floods nor learns: in a loop a flooded frame would go round for ever."""

    def start(self, _controllers: Any) -> None:
        """Start the bridge. Its ports are set before it is up, when hosts already send frames of their own accord."""
        ports = [port.name for port in self.intfList() if self.name in port.name]
        lines = [f"link add {self.name} type bridge", *(f"link set {port} master {self.name}" for port in ports)]
        run("ip -batch -", stdin="\n".join(lines))
        setting = "flood off mcast_flood off bcast_flood off learning off"
        run("bridge -batch -", stdin="\n".join(f"link set dev {port} {setting}" for port in ports))
        run(f"ip link set {self.name} up")

"""The numbers of packets of a trace in the captures of the same run: the simulator writes a packet's number into IPv4."""

from collections import defaultdict
from collections.abc import Mapping
from struct import unpack_from

from experiments.captures.capture_file import CaptureFile
from experiments.captures.trace_file import TracedPacket
from experiments.report.run_report_folder import RunFolder
from topologies.addressing import host_address

__all__ = ["frames_of_trace"]

_IDENTIFICATION, _SOURCE = 18, 26
"""Offsets in an Ethernet frame with IPv4."""
_LONGEST_TRANSIT = 30.0


def frames_of_trace(folder: RunFolder, packets: Mapping[int, TracedPacket]) -> dict[int, dict[str, int]]:
    """Return the numbers of packets in the capture files, by packet and name of the file; of a file the first sighting."""
    if not folder.captures:
        return {}
    names = {host_address(folder.topology, host): host for host in {packet.node for packet in packets.values()}}
    # The identification has 16 bits: the same one comes again after 65,536 packets.
    alike: defaultdict[tuple[int, str], list[TracedPacket]] = defaultdict(list)
    for packet in packets.values():
        alike[packet.number & 0xFFFF, packet.node].append(packet)
    found: dict[int, dict[str, int]] = {}
    for path in folder.captures:
        for frame in CaptureFile(path).frames():
            if len(frame.data) < _SOURCE + 4:
                continue
            (identification,) = unpack_from(">H", frame.data, _IDENTIFICATION)
            source = ".".join(map(str, frame.data[_SOURCE : _SOURCE + 4]))
            candidates = alike.get((identification, names.get(source, "")), ())
            for packet in candidates:
                # The capture's clock has nanoseconds.
                if packet.time - 1e-6 <= frame.time <= packet.time + _LONGEST_TRANSIT:
                    found.setdefault(packet.number, {}).setdefault(path.stem, frame.number)
    return found

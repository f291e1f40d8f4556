"""Export of topologies to other emulators: a Mininet script, a CORE scenario, a Kathará lab."""

from topologies.exports.core_xml import core_xml
from topologies.exports.kathara_lab import kathara_lab
from topologies.exports.mininet_script import mininet_script

__all__ = ["core_xml", "kathara_lab", "mininet_script"]

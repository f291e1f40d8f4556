"""The NORM messages as scapy layers: an independent description of the wire format."""

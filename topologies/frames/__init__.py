"""Ethernet frames with UDP over IP: building them, parsing them, and the reassembly of IPv4 fragments."""

"""Emulation: a topology in Linux network namespaces (Mininet), and protocol machines on real UDP sockets.

`emu.launch.emulate` runs one emulation; `emu.host.UdpHost` runs one machine on the sockets of this computer. Programs of
others that take part are in `emu.peers`.
"""

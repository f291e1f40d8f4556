"""The contract suite: rules for every registered protocol and every host, tested with protocols that break them on purpose."""

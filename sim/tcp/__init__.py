"""TCP connections of simulated hosts, segment by segment, over the links, queues, channels and faults of a network."""

"""Analysis of NORM traffic in capture files: senders, receivers, objects, losses, repair rounds, and protocol violations."""

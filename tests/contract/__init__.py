"""The contract suite: what every registered protocol and every host must keep. Toys that break it on purpose test the suite."""

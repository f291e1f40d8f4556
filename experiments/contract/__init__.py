"""The contract suite: rules that every protocol must keep, checked on fake hosts, in the simulator and over UDP on loopback.

`suite` checks all rules (`mcastlab contract`). `fake_host`, `bench`, `recorder` and `losses` also serve tests of
single protocols.
"""

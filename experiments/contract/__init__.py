"""The contract suite: what every protocol has to do, checked on fake hosts, in the simulator and over UDP on loopback.

`suite` runs all of it (`mcastlab contract`). `fake_host`, `bench`, `recorder` and `losses` are tools for tests of one's own.
"""

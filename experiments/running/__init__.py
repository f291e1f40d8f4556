"""How a scenario or a single program is run, in the simulator, in Mininet and on a real network, and who watches it."""

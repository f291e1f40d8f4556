"""Run scenarios and single programs in the simulator, in Mininet and on a real network; record and check them."""

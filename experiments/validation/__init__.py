"""Validation against theory: every reference value measured with the protocol machines and links of the simulator.

`tests/vectors/reference.json` has the reference values in families. Each module here measures some families and lists them in
`FAMILIES`. `mcastlab validate` and `make validate` run them.
"""

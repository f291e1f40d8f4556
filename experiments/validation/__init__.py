"""Theory against the laboratory: every reference value measured with the real machines and links.

A family of reference values (`tests/vectors/reference.json`) is measured by one function; the modules here each serve some
families and list them in `FAMILIES`. `mcastlab validate` and `make validate` run them.
"""

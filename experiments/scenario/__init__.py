"""Read scenarios, which hold all parameters of a run, from YAML and validate them."""

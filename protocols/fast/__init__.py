"""What a host may run in place of the plain machines for speed; results are equal."""

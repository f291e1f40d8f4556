"""What TCP has in every world: the options of its connections."""

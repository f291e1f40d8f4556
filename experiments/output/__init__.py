"""Tables, result folders and progress lines."""

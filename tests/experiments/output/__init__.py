"""Output of the commands: tables within a width, and golden files."""

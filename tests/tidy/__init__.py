"""What a program can check about the house itself."""

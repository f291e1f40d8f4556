"""The web monitor."""

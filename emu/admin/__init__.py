"""The registry of tunnels behind a real HTTP server, and its client."""

"""What protocols with a central server share: the connection of clients, what waits to be sent, acknowledged publishing."""

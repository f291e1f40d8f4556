"""Parts of protocols with a central server: the server, its clients, messages that wait to be sent, acknowledged publishing."""

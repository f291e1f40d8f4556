"""What applications do in a run: send files, publish messages, subscribe to them; and the account of what arrived."""

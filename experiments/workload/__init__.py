"""Applications of a run: they send files, publish messages and subscribe to them; and the ledger of what arrived."""

"""The NORM wire format (RFC 5740 4): messages to bytes and back."""

"""Sessions on a real network for programs and commands: objects and streams, sent and received in one asyncio event loop."""

"""A Spark server without Spark."""

import threading
from pathlib import Path

from experiments.sweep.run.spark_server import Server

__all__ = ["Sparkless"]


class Sparkless(Server):
    """A server that accepts clients, and has no Spark for them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 1.0)
        threading.Thread(target=self._accept, daemon=True).start()

"""Where the containers of a node come from: from pools, or from new memory for every message."""

from collections.abc import Callable
from typing import TypeVar

from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.pool import Container, Pool

__all__ = ["containers"]

C = TypeVar("C", bound=Container)


def containers(config: Fjm2Config, make: Callable[[int], C], work: Callable[[float], None] | None = None) -> Pool[C]:
    """Return the containers of a node; `work(seconds)` takes the processor time of new ones, None: they take none."""
    seconds = config.allocate
    if work is None or not seconds:
        return Pool(config.pool, make) if config.pooling else _NewContainers(config.pool, make)

    def make_slowly(octets: int) -> C:
        work(octets * seconds)
        return make(octets)

    return (_KeptContainers if config.pooling else _NewContainers)(config.pool, make_slowly)


class _NewContainers(Pool[C]):
    """Containers of which none is used again; their number is bounded all the same."""

    __slots__ = ()

    def give_back(self, container: C) -> None:
        """Let a container go."""
        self.held -= container.octets
        self.returned += 1


class _KeptContainers(Pool[C]):
    """A pool that keeps containers to which nothing was written, as nothing is in a simulation without bytes."""

    __slots__ = ()

    def give_back(self, container: C) -> None:
        """Give a container back, to be used again."""
        if container.is_allocated:
            super().give_back(container)
            return
        self.held -= container.octets
        self.returned += 1
        self._keep(container)

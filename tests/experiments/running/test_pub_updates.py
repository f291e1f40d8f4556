"""`mcastlab pub --protocol distributor` answers requests behind its last update as long as some come."""

import asyncio
from typing import Any

import pytest

from experiments.commands import pub_updates
from protocols.distributor.config import DistributorConfig


class Requested:
    """A connection of which a datagram is requested in the first of so many waits."""

    config = DistributorConfig(timeout=0.8, request_delay=0.01)

    def __init__(self, requested: int) -> None:
        self.requested = requested
        self.waits: list[float] = []
        self.heartbeats = 0

    @property
    def requests_received(self) -> int:
        return min(len(self.waits), self.requested)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))

    async def flush(self) -> None:
        self.heartbeats += 1


@pytest.mark.parametrize(("requested", "longer"), [(0, 0), (1, 1), (5, 2), (7, 4)])
def test_a_publisher_stays_as_long_as_requests_come(requested: int, longer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    connection: Any = Requested(requested)
    publishing = pub_updates._Publishing(connection, ["/a"], None, None, 1.0)
    monkeypatch.setattr(asyncio, "sleep", connection.sleep)
    asyncio.run(publishing._answer_requests(connection))
    assert connection.waits == [0.25] * 4 + [3.21] * longer
    assert connection.heartbeats == 4

"""Link queues: single server with Poisson arrivals, unlimited and limited, and the token bucket.

Packets are offered to the port of a simulated link. The unit of time is the mean service time; sizes are large, so that
rounding to whole bytes is negligible. Standard errors are those of consecutive batch means.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import log

from experiments.validation.references import Families, Measured, Reference, mean_of
from protocols.rng import Rng, key_of
from topologies.drop_tail import DropTailQueue
from topologies.ports import TokenPort

__all__ = ["FAMILIES"]

ARRIVALS = 400_000
BATCHES = 40
SIZE = 10_000_000


def _exponential(rng: Rng) -> float:
    return -log(1.0 - rng.uniform())


def _fixed(rng: Rng) -> float:
    del rng
    return 1.0


@dataclass(slots=True)
class _Batch:
    """Counts of one batch of consecutive packets."""

    offered: int = 0
    dropped: int = 0
    wait: float = 0.0
    stay: float = 0.0
    span: float = 0.0


def _run(reference: Reference, effort: float, service: Callable[[Rng], float]) -> Iterator[_Batch]:
    """Offer Poisson arrivals to a link; the limit K counts the packet in service, a link's `queue` does not."""
    rho, limit = reference.params["rho"], reference.params.get("K")
    queue = DropTailQueue(SIZE, None if limit is None else limit - 1)
    rng = Rng(key_of(1, reference.id))
    now, each = 0.0, int(max(ARRIVALS * effort, 20_000) / BATCHES)
    for number in range(BATCHES + 1):
        batch, begin = _Batch(), now
        for _ in range(each):
            now += _exponential(rng) / rho
            size = round(service(rng) * SIZE)
            end = queue.offer(size, now)
            batch.offered += 1
            if end is None:
                batch.dropped += 1
            else:
                batch.stay += end - now
                batch.wait += end - now - size / SIZE
        batch.span = now - begin
        if number:
            # The first batch is warm-up and is discarded.
            yield batch


def _waiting(service: Callable[[Rng], float]) -> Callable[[Reference, float], Mapping[str, Measured]]:
    def measure(reference: Reference, effort: float) -> Mapping[str, Measured]:
        return {"value": mean_of([batch.wait / batch.offered for batch in _run(reference, effort, service)])}

    return measure


def _limited(service: Callable[[Rng], float]) -> Callable[[Reference, float], Mapping[str, Measured]]:
    def measure(reference: Reference, effort: float) -> Mapping[str, Measured]:
        batches = list(_run(reference, effort, service))
        found = {
            "p_drop": mean_of([batch.dropped / batch.offered for batch in batches]),
            "mean_number": mean_of([batch.stay / batch.span for batch in batches]),
            "mean_wait": mean_of([batch.wait / (batch.offered - batch.dropped) for batch in batches]),
        }
        return {name: value for name, value in found.items() if name in reference.values}

    return measure


def _bucket(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Return departure times, numbered as in the reference."""
    del effort
    port = TokenPort(reference.params["rate_bps"] / 8, reference.params["bucket_bytes"], None, None)
    ends = [end for when, size in reference.params["arrivals"] for _, end in port.offer(None, size, when)]
    return {name: Measured(end) for name, end in zip(reference.values, ends, strict=True)}


FAMILIES: Families = {
    "mm1": _waiting(_exponential),
    "md1": _waiting(_fixed),
    "mm1k": _limited(_exponential),
    "md1k": _limited(_fixed),
    "token_bucket": _bucket,
}

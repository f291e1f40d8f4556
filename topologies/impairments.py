"""The attributes of a link as a row of a result, with the same keys in the simulator and in Mininet."""

from math import inf
from typing import Any

from topologies.channels import Perfect, Recorded
from topologies.spec import LinkSpec

__all__ = ["impairment"]

_OTHERS = ("duplicate", "corrupt", "bit_errors", "mtu")


def impairment(link: str, spec: LinkSpec, by: str) -> dict[str, Any]:
    """Return the attributes of one direction, each with the mechanism `by` which it is applied; only `link` if it has none."""
    row: dict[str, Any] = {"link": link}
    if spec.rate < inf:
        queue = spec.queue if spec.discipline is None else spec.discipline.model_dump()
        row |= {"rate": spec.rate, "queue": queue, "rate_by": by}
    if spec.delay or spec.jitter is not None:
        row |= {"delay": spec.delay if spec.jitter is None else spec.jitter.model_dump(), "delay_by": by}
    if not isinstance(spec.loss, Perfect):
        row |= {"loss": str(spec.loss) if isinstance(spec.loss, Recorded) else spec.loss.model_dump(), "loss_by": by}
    others = {key: value for key in _OTHERS if (value := getattr(spec, key))}
    return row | {"others": others, "others_by": by} if others else row

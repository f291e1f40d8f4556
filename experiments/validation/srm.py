"""SRM request timers in a star (Floyd et al. 1997): requests per loss adjacent to the source, and time to the first request.

The hub is one unit of time from every member, so members are two units apart. Requests of later rounds are counted separately
by the machines and left out, as in the closed form.
"""

from collections.abc import Mapping

from experiments.validation.references import Families, Measured, Reference, mean_of
from experiments.validation.testbed import StarTestbed, run_session
from protocols.arq.messages import Data, Nack
from protocols.machine import Message
from protocols.rng import key_of

__all__ = ["FAMILIES"]

UNIT = 0.001
SIZE = 100
EVENTS = 2000
BATCHES = 10
SESSION_INTERVAL = 1.0
"""Seconds between the session messages of a member, which estimate distances again and again."""


def _star(reference: Reference, effort: float) -> Mapping[str, Measured]:
    params = reference.params
    members, width = params["G"] - 1, params["C2"]
    events = max(int(EVENTS * effort) // BATCHES, 5)
    spacing = (20 * width + 50) * UNIT
    settings = {"rate": 1e9, "segment": SIZE, "timeout": spacing, "robust": 30, "distance": 2 * UNIT}
    settings |= {"timers": "fixed", "session_interval": SESSION_INTERVAL}
    settings |= {"c1": float(params["C1"]), "c2": float(width)}
    star = StarTestbed(members, delay=UNIT, trunk=UNIT, lose=_is_odd)
    jobs = [(0.0, SIZE), *((event * spacing, SIZE) for event in range(1, events + 1) for _ in range(2))]
    requests, firsts = [], []
    for batch in range(BATCHES):
        seed = key_of(1, reference.id, batch) % 2**32
        outcome = run_session(star, "srm", settings, *jobs, seed=seed, wanted=_matters)
        assert outcome.complete == members, "a receiver misses something"
        counts = outcome.receivers
        requests.append((counts["nacks_sent"] - counts["nacks_repeated"]) / events)
        firsts += _firsts(outcome.received)
    return {"requests": mean_of(requests), "first_request_delay": mean_of(firsts)}


def _firsts(received: list[tuple[float, Message]]) -> list[float]:
    """Return delays from each packet that reveals a loss to the first request, in units of time."""
    found, shown, waiting = [], 0.0, False
    for when, message in received:
        if isinstance(message, Data):
            shown, waiting = when, True
        elif waiting:
            found.append((when - shown) / UNIT - 2.0)
            waiting = False
    return found


def _is_odd(identity: int) -> bool:
    """Return whether this is content of an object with an odd number."""
    return identity >> 62 == 0 and identity >> 32 & 1 == 1


def _matters(message: Message) -> bool:
    """Return whether a message is a request, or the first packet of an object that reveals a loss."""
    if isinstance(message, Nack):
        return True
    return isinstance(message, Data) and not message.repair and message.object_id % 2 == 0 and message.unit == 0


FAMILIES: Families = {"srm_star": _star}

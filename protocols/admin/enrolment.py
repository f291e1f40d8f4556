"""Duties of a client of a registry with their times, for machines and for programs alike.

A client registers, renews before its lease is over, sends its counters with that, and requests the list when an advertisement
or the answer to a renewal has a newer stamp, at most once a second. It has no connection and no clock: `next_request` says what
to send, and `answered`, `failed` and `advertised` take what came. A registry that does not answer changes nothing for the
tunnels: the list stays as it is.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final

from protocols.admin.config import MOST_NODES
from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement, Node, peers_of
from protocols.admin.registration import (
    LARGEST_ID,
    LARGEST_STAMP,
    LONGEST_COUNTER,
    MOST_COUNTERS,
    Registration,
    Renewal,
    encoded,
    nodes_of,
    read_number,
)
from protocols.errors import WireError

__all__ = ["ASK_EVERY", "CONNECT_PATIENCE", "Counters", "Enrolment", "UpdatePeers", "Usage"]

UpdatePeers = Callable[[Sequence[Node]], None]
Counters = Callable[[], Mapping[str, float]]
Usage = Callable[[], tuple[float, int]]
"""Returns the processor time in seconds and the memory in bytes of a program."""

ASK_EVERY: Final = 1.0
"""Seconds between two questions for the list, at least."""
FIRST_PATIENCE, LAST_PATIENCE = 3.0, 5.0
"""Seconds after which a request that is not answered has failed: the first one, doubled by each failure up to the second."""
CONNECT_PATIENCE: Final = 2.0
"""Seconds after which a connection that does not open has failed.

TCP repeats a SYN 1, 3 and 7 seconds after the first. With a new connection after 2 seconds there is one in every second, until
the registry can be reached again.
"""
RENEWALS: Final = 4
"""Renewals in the time of a lease, so that one that is lost does no harm."""
FIRST_RETRY, LAST_RETRY = 0.1, 2.0
"""Seconds from an attempt that fails to the next one: the first one, doubled each time up to the second."""
REFUSED: Final = (401, 403)

_COUNTS: Final = (
    *("registrations", "renewals_sent", "lists_received", "advertisements_heard", "advertisements_ignored"),
    *("registry_failures", "registry_refusals"),
)


def _nothing() -> Mapping[str, float]:
    """Return no counters, for a node without any."""
    return {}


def _unknown() -> tuple[float, int]:
    """Return zeros, for a program whose processor time and memory are not measured."""
    return 0.0, 0


class Enrolment:
    """The membership of one tunnel in the list of a registry; `update_peers` gets the others whenever they change."""

    def __init__(
        self,
        registration: Registration,
        update_peers: UpdatePeers,
        counters: Counters = _nothing,
        usage: Usage = _unknown,
    ) -> None:
        self._registration, self._update_peers, self._counters, self._usage = registration, update_peers, counters, usage
        self.id: int | None = None
        """The node's id; None while it is not in the list."""
        self.registry = 0
        self.stamp = -1
        self.lease = inf
        self.nodes: tuple[Node, ...] = ()
        """The list as it was last received."""
        self.peers: tuple[Node, ...] | None = None
        """The last argument of `update_peers`."""
        self.refused = 0
        """Status of the response by which the registry refused this client; 0: it did not."""
        self._renew_at = self._ask_at = self._kept_until = inf
        self._asked_at = self._retry_at = -inf
        self._retry = FIRST_RETRY
        self.patience = FIRST_PATIENCE
        """How long the answer to a request is waited for, in seconds."""
        self._kept: tuple[Node, ...] = ()
        self._own_id = -1
        """The id in `nodes`."""
        self.counts = dict.fromkeys(_COUNTS, 0)

    @property
    def own(self) -> Node | None:
        """The entry of this node in the list."""
        return next((node for node in self.nodes if node.id == self._own_id), None)

    @property
    def due(self) -> float:
        """When `next_request` is wanted, in seconds."""
        wanted = -inf if self.id is None else min(self._renew_at, self._ask_at)
        return min(max(wanted, self._retry_at), self._kept_until)

    def next_request(self, now: float) -> Request | None:
        """Return what to send now; None: nothing. It must be answered or have failed before the next one."""
        if now >= self._kept_until:
            self._kept, self._kept_until = (), inf
            self._tell()
        if now < self._retry_at:
            return None
        if self.id is None:
            self.counts["registrations"] += 1
            return Request("POST", "/nodes", encoded(self._registration.plain()))
        if now >= self._ask_at:
            self._asked_at = now
            return Request("GET", f"/nodes?stamp={max(0, self.stamp)}")
        if now >= self._renew_at:
            self.counts["renewals_sent"] += 1
            return Request("PUT", f"/nodes/{self.id}", encoded(self._renewal().plain()))
        return None

    def last_request(self) -> Request | None:
        """Return what to send before the node ends; None: nothing."""
        return None if self.id is None else Request("DELETE", f"/nodes/{self.id}")

    def answered(self, request: Request, response: Response, now: float) -> bool:
        """Take the response to a request; return False for one that is of no use, after which the request has failed."""
        self.refused = response.status if response.status in REFUSED else 0
        self.counts["registry_refusals"] += bool(self.refused)
        try:
            self._take(request, response, now)
        except (WireError, ValueError, RecursionError):
            self.failed(now)
            return False
        self._retry, self._retry_at, self.patience = FIRST_RETRY, -inf, FIRST_PATIENCE
        return True

    def failed(self, now: float, lasted: float = 0.0) -> None:
        """Note that an attempt of `lasted` seconds had no answer, or none of use."""
        self.counts["registry_failures"] += 1
        self._retry_at = now + max(0.0, self._retry - lasted)
        self._retry = min(2 * self._retry, LAST_RETRY)
        self.patience = min(2 * self.patience, LAST_PATIENCE)

    def advertised(self, advertisement: Advertisement, now: float) -> None:
        """Take an advertisement; one of another registry, or of an older list, is ignored."""
        if self.id is None or advertisement.registry != self.registry or advertisement.stamp < self.stamp:
            self.counts["advertisements_ignored"] += 1
            return
        self.counts["advertisements_heard"] += 1
        self._ask_for(advertisement.stamp, now)

    def _ask_for(self, stamp: int, now: float) -> None:
        """Request the list as soon as that is allowed, if this one is older."""
        if stamp > self.stamp:
            self._ask_at = min(self._ask_at, max(now, self._asked_at + ASK_EVERY))

    def _renewal(self) -> Renewal:
        told = {name: value for name, value in self._counters().items() if len(name) <= LONGEST_COUNTER}
        return Renewal(dict(list(told.items())[:MOST_COUNTERS]), *self._usage())

    # Responses

    def _take(self, request: Request, response: Response, now: float) -> None:
        """Take a response. WireError or ValueError for one that is not expected."""
        status = response.status
        if request.method == "POST" and status == 201:
            self._registered(_decoded(response), now)
        elif request.method == "PUT" and status == 200:
            self._renew_at = now + self.lease / RENEWALS
            self._ask_for(read_number(_decoded(response), "stamp", LARGEST_STAMP), now)
        elif request.method == "PUT" and status == 404:
            self.id, self._ask_at = None, inf
        elif request.method == "GET" and status in (200, 304):
            self._ask_at = inf
            if status == 200:
                self._listed(_decoded(response))
        else:
            raise WireError(f"status {status} is no answer to {request.method}")

    def _registered(self, told: dict[str, Any], now: float) -> None:
        lease = told.get("lease")
        if isinstance(lease, bool) or not isinstance(lease, (int, float)) or not 0 < lease < 1e6:
            raise WireError("lease: is not allowed; seconds")
        number, registry = read_number(told, "id", LARGEST_ID), read_number(told, "registry", LARGEST_STAMP)
        if self.peers:
            # The registry began anew, or nobody reached it for long. Others have to register again as well, until when their
            # absence from the list means nothing.
            self._kept, self._kept_until = self.peers, now + lease
        self.id = self._own_id = number
        self.registry, self.lease, self.stamp = registry, float(lease), -1
        self._renew_at, self._ask_at = now + lease / RENEWALS, inf
        self._listed(told)

    def _listed(self, told: dict[str, Any]) -> None:
        """Take a list; WireError, and nothing changes, for one that is none."""
        stamp, nodes = read_number(told, "stamp", LARGEST_STAMP), nodes_of(told.get("nodes"), MOST_NODES)
        self.counts["lists_received"] += 1
        if all(node.id != self.id for node in nodes):
            # It was forgotten, as others may be, and has to register again.
            self.id = None
            return
        self.stamp, self.nodes = stamp, nodes
        self._tell()

    def _tell(self) -> None:
        """Report the other nodes, if they changed."""
        listed = {node.endpoint for node in self.nodes}
        kept = tuple(node for node in self._kept if node.endpoint not in listed)
        peers = (*peers_of(self.nodes, self._own_id), *kept)
        if peers != self.peers:
            self.peers = peers
            self._update_peers(peers)


def _decoded(response: Response) -> dict[str, Any]:
    """Return the object in a response. ValueError or WireError if there is none."""
    found = json.loads(response.body)
    if not isinstance(found, dict):
        raise WireError("is not allowed; an object")
    return found

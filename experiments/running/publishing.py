"""The application of a publisher: publishes the messages of a plan, in every world alike."""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any, cast

from experiments.running.lives import NO_COUNTS, longest_of, total_counts
from experiments.running.role_node import RoleNode
from experiments.workload.bodies import body_of
from experiments.workload.publish import LIFE_SHIFT, MessagePlan
from protocols.errors import ConfigError
from protocols.hosting import PortsHost
from protocols.machine import Event
from protocols.messaging import (
    MessageAccepted,
    MessageDropped,
    MessageExpired,
    MessageSent,
    Publisher,
    PublisherIdle,
    PublisherSubscriber,
    PublisherUnblocked,
)

__all__ = ["PublisherProgram"]

MOST_AT_ONCE = 1_000_000
"""Messages without a time between them that a publisher may take at one instant, where the workload has no count."""


class _Life:
    """What happened to the messages published since the host started or restarted; times are in seconds."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.at: list[float] = []
        self.accepted: list[list[int]] = []
        self.sent: list[list[int]] = []
        self.expired: list[int] = []
        self.dropped = 0

    def plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "life": self.number,
            "at": self.at,
            "accepted": self.accepted,
            "sent": self.sent,
            "expired": self.expired,
            "dropped": self.dropped,
        }


class PublisherProgram:
    """Publish messages as planned; finished some time after all are done with (`PublishWorkload.linger`).

    With `bodies` their seed, messages have bodies of bytes, else of a size only. After a crash of its host it goes on, and
    numbers the messages apart.
    """

    def __init__(self, node: RoleNode, plan: MessagePlan, bodies: int | None) -> None:
        self._node = node
        self._plan = plan
        self._bodies = bodies
        self._host: PortsHost | None = None
        self.machine: Publisher | None = None
        self._earlier = NO_COUNTS
        """Counters of the machines before crashes and absences."""
        self._queues: list[int] = []
        """The longest queues of these machines, by priority."""
        self._lives: list[_Life] = []
        self._restarts = -1
        self._published = 0
        self._gaps: Iterator[float] = iter(())
        self._next_at = 0.0
        self._is_blocked = self._is_freed = self._is_publishing = self._is_down = self._is_away = False
        self._is_idle = True
        self._blocked_since = 0.0
        self._blocked = 0.0
        self._has_timer = False
        self.ended_at: float | None = None

    def start(self, host: PortsHost) -> None:
        """Run a publisher on the host; a call after a crash goes on with what is due from then on.

        Without a rate, from which this follows, it publishes everything again.
        """
        self._host = host
        self._restarts += 1
        self._lives.append(_Life(self._restarts))
        self._is_down = self._is_away = self._is_blocked = self._is_publishing = self._has_timer = False
        self._is_idle = True
        self.ended_at = None
        self.machine = cast(Publisher, self._node.make(host, self._restarts))
        host.run(self.machine, self._on_event)
        self._begin_plan(host.now)
        self._later(max(self._next_at, host.now))

    def _begin_plan(self, now: float) -> None:
        """Begin the plan; after a crash skip what was due before `now`."""
        self._gaps = self._plan.gaps()
        self._published, self._next_at = 0, self._plan.work.at
        if self._restarts and self._plan.work.rate not in (None, inf):
            while self._next_at < now and not self._is_over(now):
                self._published += 1
                self._next_at += next(self._gaps)

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes, in other processes, from which the instance follows; call before `start`."""
        self._restarts = times - 1

    def crash(self) -> None:
        """Handle a crash of the host: nothing is published until it restarts."""
        self._end_machine()
        self._is_down, self._is_away = True, False
        self.ended_at = None

    @property
    def _counted(self) -> Publisher | None:
        """The machine whose counters are those of the publisher."""
        return self.machine.publisher if isinstance(self.machine, PublisherSubscriber) else self.machine

    def _end_machine(self) -> None:
        """Keep the counters of a machine that gets no further input."""
        if self.machine is not None:
            self._earlier = total_counts(self._earlier, self._counted)
            self._queues = longest_of(self._queues, self.machine.longest_queues())
            self.machine = None

    def leave(self) -> None:
        """Stop the publisher, with what it has not sent, until `come`."""
        if self._host is None or self.machine is None or self._is_down:
            return
        self._host.stop()
        self._end_machine()
        self._is_down = self._is_away = True
        self.ended_at = None

    def come(self) -> None:
        """Go on after `leave` with what is due from now on, unless the host crashed meanwhile."""
        if self._is_away and self._host is not None:
            self.start(self._host)

    # Publishing

    def _later(self, when: float) -> None:
        """Publish at `when` seconds, unless the host crashes before."""
        assert self._host is not None
        if not self._has_timer:
            self._has_timer = True
            self._host.later(when, partial(self._in_life, self._restarts, self._on_time))

    def _in_life(self, restarts: int, action: Callable[[], None]) -> None:
        if restarts == self._restarts and not self._is_down:
            action()

    def _on_time(self) -> None:
        self._has_timer = False
        self._publish_due()

    def _is_over(self, now: float) -> bool:
        work = self._plan.work
        return (work.count is not None and self._published >= work.count) or (work.until is not None and now >= work.until)

    def _publish_due(self) -> None:
        """Publish what is due; events that come meanwhile do not begin this again."""
        host = self._host
        if host is None or self._is_publishing:
            return
        self._is_publishing = True
        began, first = host.now, self._published
        while not self._is_blocked and self._next_at <= host.now and not self._is_over(host.now):
            self._publish(host)
            if self._published - first >= MOST_AT_ONCE and host.now == began:
                self._check_blocks(began)
        self._is_publishing = False
        if not self._is_blocked and not self._is_over(host.now):
            self._later(self._next_at)
        self._check_end()

    def _check_blocks(self, now: float) -> None:
        """Raise ConfigError where the publisher would take messages for ever at this instant, and time would never go on."""
        work = self._plan.work
        if work.count is None and (work.rate == inf or work.think == 0.0):
            raise ConfigError(
                f"workload: the publisher to {work.to} has taken {MOST_AT_ONCE} messages at {now:g} s without being blocked; "
                "give the workload a 'count' or a 'rate' like 500/s, or the protocol a 'rate' like 10Mbit"
            )

    def _publish(self, host: PortsHost) -> None:
        """Publish the next message, and set the time of the one after it."""
        machine, life, work = self.machine, self._lives[-1], self._plan.work
        assert machine is not None
        now, number = host.now, life.number << LIFE_SHIFT | len(life.at)
        body = None if self._bodies is None else body_of(self._bodies, self._plan.client, number, self._plan.size(number))
        message = self._plan.message(number, host.epoch + now, body)
        life.at.append(now)
        self._published += 1
        self._is_freed = self._is_idle = False
        if host.call(machine.publish, message) and not self._is_freed:
            self._is_blocked, self._blocked_since = True, now
        if work.think is None:
            self._next_at += next(self._gaps)
        elif not self._is_blocked:
            self._next_at = host.now + work.think

    def _on_event(self, event: Event) -> None:
        life = self._lives[-1]
        if isinstance(event, PublisherUnblocked):
            self._unblock()
        elif isinstance(event, MessageAccepted):
            _add(life.accepted, _place(event.number))
        elif isinstance(event, MessageSent):
            _add(life.sent, _place(event.number))
        elif isinstance(event, MessageExpired) and event.publisher == self._plan.client:
            life.expired.append(_place(event.number))
        elif isinstance(event, MessageDropped):
            life.dropped += 1
        elif isinstance(event, PublisherIdle):
            self._is_idle = True
            self._check_end()

    def _unblock(self) -> None:
        host = self._host
        assert host is not None
        self._is_freed = True
        if not self._is_blocked:
            return
        self._is_blocked = False
        self._blocked += host.now - self._blocked_since
        if self._plan.work.think is not None:
            self._next_at = host.now + self._plan.work.think
        self._publish_due()

    def _check_end(self) -> None:
        """Begin the wait for the end of the run when everything is published and done with."""
        host = self._host
        if host is None or self.ended_at is not None or not self._is_idle or not self._is_over(host.now):
            return
        self.ended_at = inf
        host.later(host.now + self._plan.work.linger, partial(self._in_life, self._restarts, self._end))

    def _end(self) -> None:
        assert self._host is not None
        self.ended_at = self._host.now

    # Results

    def finished(self) -> bool:
        """Return whether everything was published and is done with, and the time after it is over."""
        return self.ended_at is not None and self.ended_at < inf

    def result(self) -> dict[str, Any]:
        """Return what was published, as plain values."""
        blocked = self._blocked
        if self._is_blocked and self._host is not None:
            blocked += self._host.now - self._blocked_since
        return {
            "role": "publisher",
            "client": self._plan.client,
            "lives": [life.plain() for life in self._lives],
            "blocked": blocked,
            "ended_at": self.ended_at if self.finished() else None,
            "counts": total_counts(self._earlier, self._counted),
            "queues": longest_of(self._queues, () if self.machine is None else self.machine.longest_queues()),
        }


def _add(ranges: list[list[int]], place: int) -> None:
    """Add a number to ranges of numbers."""
    if ranges and ranges[-1][1] == place - 1:
        ranges[-1][1] = place
    else:
        ranges.append([place, place])


def _place(number: int) -> int:
    """Return the number of a message within its life."""
    return number & (1 << LIFE_SHIFT) - 1

"""Control of a running NORM sender: objects cancelled and sent again, parameters."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Final

from protocols.errors import UsageError
from protocols.events import NodeClash, ObjectAborted
from protocols.machine import Address, Ports
from protocols.norm.config import NormConfig
from protocols.norm.limits import CLASHES, host_of
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.sender_content import SenderContent
from protocols.norm.window import without

__all__ = ["ADJUSTABLE", "ObjectControl"]

ADJUSTABLE: Final = (
    *("rate", "backoff", "gsize", "robust", "auto_parity", "flow"),
    *("cache_min", "cache_max", "cache_size", "grtt_max", "probe_min", "probe_max"),
)
"""The parameters that may change while a sender runs."""


class ObjectControl(SenderContent):
    """A sender whose application cancels objects, sends them again and changes parameters, each by `Host.call`."""

    __slots__ = ("_clashes",)

    def __init__(self, ports: Ports, config: NormConfig, node: int, instance: int) -> None:
        super().__init__(ports, config, node, instance)
        self._clashes: tuple[Address, ...] = ()

    @abstractmethod
    def _catch_up(self, requested: RequestedRepairs | None) -> None:
        """Bring the transmit state up to date before it is read (None)."""

    @abstractmethod
    def _adopt_rate(self, rate: float) -> None:
        """Send at another rate from now on, bytes per second."""

    def _clash(self, source: Address) -> None:
        """Report a host that sends with this sender's node id, once."""
        host = host_of(source)
        if len(self._clashes) < CLASHES and host not in self._clashes:
            self._clashes = (*self._clashes, host)
            self.ports.notify(NodeClash(self._factory.origin.source_id, str(host)))

    def cancel(self, object_id: int, now: float) -> bool:
        """Send nothing more of an object; receivers that request it get a SQUELCH. Return False if it is not known.

        It ends with `ObjectAborted`, an open stream, too.
        """
        self._catch_up(None)
        self._invalidate()
        item = self._window.objects.get(object_id)
        if item is not None:
            self._drop(item)
        else:
            item = next((each for each in self._window.backlog if each.object_id == object_id), None)
            if item is None:
                return False
            self._window.backlog = without(self._window.backlog, item)
            self._streams.pop(object_id, None)
        self.ports.notify(ObjectAborted(self._factory.origin.source_id, object_id, "cancelled"))
        self._admit(now)
        self._schedule()
        return True

    def requeue(self, object_id: int, now: float) -> bool:
        """Send an object that is still in the window once more, not marked as a repair; `ObjectSent` follows again.

        Return False if it has left the window, is being sent for the first time, or is a stream.
        """
        item = self._window.objects.get(object_id)
        if item is None or item.unsent or object_id in self._streams:
            return False
        self._catch_up(None)
        self._invalidate()
        self._repairs = [other for other in self._repairs if other is not item]
        item.rewind()
        item.active_at = now
        self._control.acks.replaced_flush = None
        self._insert_unsent(item)
        self._flushes, self._flush_at = 0, inf
        self._schedule()
        return True

    def adjust(self, settings: Mapping[str, object], now: float) -> None:
        """Change parameters, those of `ADJUSTABLE`. Raises UsageError for others, ConfigError for what is not allowed."""
        for name in settings:
            if name not in ADJUSTABLE:
                raise UsageError(f"{name}: can't be changed while a sender runs; these can: {', '.join(ADJUSTABLE)}")
        if "rate" in settings and self._config.congestion != "none":
            raise UsageError("rate: congestion control sets it; rate_max bounds it")
        config = replace(self._config, **settings)  # type: ignore[arg-type]
        self._catch_up(None)
        self._invalidate()
        self._config = config
        self._window.configure(config)
        self._factory.configure(config)
        self._control.configure(config)
        self._grtt.configure(config)
        self._factory.advertise(self._grtt.code)
        if "rate" in settings:
            self._adopt_rate(config.rate)
        self._admit(now)
        self._schedule()

"""Deliver a complete object to the application, for protocols that keep segments until the object is complete."""

from collections.abc import Callable, Iterable
from contextlib import suppress

from protocols.events import Event, ObjectAborted, ObjectReceived
from protocols.machine import Offer, Ports, Sink

__all__ = ["deliver", "delivered"]


def deliver(ports: Ports, offer: Offer, info: bytes, segments: Iterable[tuple[int, bytes | None]]) -> None:
    """Offer an object, write its segments, commit it, and notify `ObjectReceived`, or `ObjectAborted` when its sink fails.

    `segments` are (offset in bytes, content) in any order; content is None for objects without bytes. An object that the
    application refuses causes no event. Call once for each object.
    """
    event = delivered(ports.accept, offer, info, segments)
    if event is not None:
        ports.notify(event)


def delivered(
    accept: Callable[[Offer], Sink | None], offer: Offer, info: bytes, segments: Iterable[tuple[int, bytes | None]]
) -> Event | None:
    """Do as `deliver`, with the application's answer to offers, and return the event; None for an object that it refuses."""
    sink = accept(offer)
    if sink is None:
        return None
    try:
        _store(sink, info, segments)
    except OSError:
        # A broken sink may fail here, too.
        with suppress(OSError):
            sink.abort()
        return ObjectAborted(offer.sender, offer.object_id, "sink")
    return ObjectReceived(offer.sender, offer.object_id, offer.size, info)


def _store(sink: Sink, info: bytes, segments: Iterable[tuple[int, bytes | None]]) -> None:
    for offset, content in segments:
        if content:
            sink.write(offset, content)
    sink.commit(info)

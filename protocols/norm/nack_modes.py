"""What a receiver requests of one sender where that is not everything: nacking modes, repair boundary (RFC 5740 5.3, NRL)."""

from typing import Final, cast

from protocols.machine import Sink
from protocols.norm.maps import SmallDict
from protocols.norm.messages import Fti
from protocols.norm.rx_object import RxObject
from protocols.serial import ahead

__all__ = ["BOUNDARIES", "MODES", "NackModes"]

MODES: Final = ("normal", "info", "none")
"""Request everything that is missing; only the NORM_INFO of objects; nothing."""
BOUNDARIES: Final = ("block", "object")
"""Look for losses behind each block; only behind each object, at FLUSH, and when the sender is silent."""


class NackModes:
    """The modes of one sender's objects: `mode` for those that have none of their own in `of`.

    `awaited` are objects that can't be opened before their NORM_INFO, since their DATA carry no FTI. `joined_at` is the object
    at which the receiver joined, if it requested objects before it that may never have existed.
    """

    __slots__ = ("awaited", "boundary", "joined_at", "mode", "of")

    def __init__(self, mode: str, boundary: str) -> None:
        self.mode = mode
        self.boundary = boundary
        self.of: dict[int, str] = {}
        self.awaited: set[int] = set()
        self.joined_at: int | None = None

    def set(self, mode: str, object_id: int | None, objects: SmallDict[RxObject | None], last: int) -> None:
        """Set the mode of an object, or of all without one of their own; `objects` and `last` as in `forget_ended`."""
        if object_id is None:
            self.mode = mode
            return
        self.forget_ended(objects, last)
        self.of[object_id] = mode

    def forget_ended(self, objects: SmallDict[RxObject | None], last: int) -> None:
        """Forget the modes of objects that have ended, since their ids come again.

        `objects` are the incomplete ones, `last` is the last that has begun.
        """
        self.of = {key: each for key, each in self.of.items() if key in objects or ahead(key, last) > 0}

    def forget_objects(self) -> None:
        """Forget the objects of an earlier instance of the sender."""
        self.of.clear()
        self.awaited.clear()
        self.joined_at = None

    def requested(self, objects: SmallDict[RxObject | None], fec_id: int) -> SmallDict[RxObject | None]:
        """Return the incomplete objects as far as they are requested: of some only the NORM_INFO, others not at all.

        The NORM_INFO of an object that is not open is named with `fec_id`, since the sender ignores requests with another one.
        """
        if self.mode == "normal" and not self.of and not self.awaited:
            return objects
        self.awaited = {key for key in self.awaited if key in objects and objects[key] is None}
        found: SmallDict[RxObject | None] = SmallDict()
        for key, item in objects.items():
            mode = self.of.get(key, self.mode)
            if mode == "normal" and key not in self.awaited:
                found[key] = item
            elif mode != "none" and (item is None or item.info is None):
                found[key] = _information(key, item, fec_id)
        return found

    def was_assumed(self, object_id: int) -> bool:
        """Return whether an object was requested without a sign that there is one: it comes before that of the joining."""
        return self.joined_at is not None and ahead(object_id, self.joined_at) < 0


def _information(object_id: int, item: RxObject | None, fec_id: int) -> RxObject:
    """Return a stand-in for an object of which only the NORM_INFO is missing."""
    return RxObject(object_id, Fti(fec_id, 0, 1, 1, 0) if item is None else item.fti, cast(Sink, None), True)

"""Repair requests, the content of NACK and CMD(REPAIR_ADV) (RFC 5740 4.3.1)."""

from struct import Struct

from protocols.errors import WireError
from protocols.norm.requests import (
    FORM_ERASURES,
    FORM_ITEMS,
    FORM_RANGES,
    Item,
    Request,
)
from protocols.norm.wire.schemes import FEC_ID_GENERAL, Schemes
from protocols.norm.wire.sizes import ITEM_HEADER

__all__ = ["pack_item", "pack_requests", "unpack_item", "unpack_requests"]

_HEAD = Struct(">BBH")
_ITEM = Struct(">BxH")
_FORMS = (FORM_ITEMS, FORM_RANGES, FORM_ERASURES)


Instance = tuple[int, int]
"""A sender: its node id, and the id of its instance."""


def pack_requests(requests: tuple[Request, ...], schemes: Schemes, sender: Instance) -> bytes:
    """Return the requests to `sender` as bytes."""
    parts = []
    for request in requests:
        items = b"".join([pack_item(item, schemes, sender, request.m) for item in request.items])
        parts.append(_HEAD.pack(request.form, request.level, len(items)) + items)
    return b"".join(parts)


def pack_item(item: Item, schemes: Schemes, sender: Instance, m: int = 0) -> bytes:
    """Return an item as bytes; `sender` is the sender of its object, whose `Fti.m` is m (0: not known)."""
    return _ITEM.pack(item.fec_id, item.object_id) + schemes.pack_id(item, *sender, m)


def unpack_item(data: bytes, schemes: Schemes, sender: Instance) -> Item | None:
    """Return the item of `sender` that `data` is; None if it is anything else."""
    if len(data) < ITEM_HEADER or data[1]:
        return None
    object_id = data[2] << 8 | data[3]
    scheme = schemes.of(data[0], *sender, object_id)
    if scheme is None or len(data) != ITEM_HEADER + scheme.id_size:
        return None
    return Item(data[0], object_id, *scheme.unpack_id(data, ITEM_HEADER))


def unpack_requests(data: bytes, at: int, schemes: Schemes, sender: Instance) -> tuple[Request, ...]:
    """Return the requests to `sender` from offset `at` to the end."""
    requests = []
    while at < len(data):
        if at + 4 > len(data):
            raise WireError(f"repair request cut off after {len(data) - at} bytes")
        form, level, length = _HEAD.unpack_from(data, at)
        at += 4
        if form not in _FORMS:
            raise WireError(f"repair request of unknown form {form}")
        if at + length > len(data):
            raise WireError(f"repair request of {length} bytes where {len(data) - at} are left")
        items = _unpack_items(data, at, at + length, schemes, sender)
        if form == FORM_RANGES and len(items) % 2:
            raise WireError(f"repair request with {len(items)} ends of ranges, which come in pairs")
        requests.append(Request(form, level, items))
        at += length
    return tuple(requests)


def _unpack_items(data: bytes, at: int, end: int, schemes: Schemes, sender: Instance) -> tuple[Item, ...]:
    items = []
    known = scheme = None
    while at < end:
        if data[at] != known or scheme is None or known == FEC_ID_GENERAL:
            known = data[at]
            scheme = schemes.read(known, *sender, int.from_bytes(data[at + 2 : at + 4]))
        behind = at + 4 + scheme.id_size
        if behind > end:
            raise WireError(f"repair item cut off after {end - at} bytes")
        items.append(Item(known, data[at + 2] << 8 | data[at + 3], *scheme.unpack_id(data, at + 4)))
        at = behind
    return tuple(items)

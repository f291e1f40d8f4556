"""Messages made by hypothesis."""

import struct
from math import inf

from hypothesis import strategies as st

from protocols.jms import BODY_TYPES, JmsMessage, Properties, Typed, jms_message

__all__ = ["FIELDS", "MESSAGES", "SCALARS"]


def _single(value: float) -> float:
    found: float = struct.unpack("!f", struct.pack("!f", value))[0]
    return found


TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
NAMES = st.from_regex(r"[a-z_$][a-zA-Z0-9_$]{0,10}", fullmatch=True).filter(
    lambda name: name.upper() not in ("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE")
)
WHOLE = {
    kind: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    for kind, bits in (("byte", 8), ("short", 16), ("int", 32), ("long", 64))
}
VALUES = {
    **WHOLE,
    "boolean": st.booleans(),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": TEXTS,
}
PROPERTIES = st.one_of([st.builds(Typed, st.just(kind), values) for kind, values in VALUES.items()])
SCALARS = st.one_of(
    PROPERTIES,
    st.builds(Typed, st.just("char"), st.characters(codec="utf-8")),
    st.builds(Typed, st.just("bytes"), st.binary(max_size=20)),
    st.just(Typed("null", None)),
)
FIELDS = st.dictionaries(NAMES, PROPERTIES, max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
CONTENTS = {
    "bytes": st.binary(max_size=200),
    "text": TEXTS,
    "map": st.dictionaries(TEXTS.filter(bool), SCALARS, max_size=5),
    "stream": st.lists(SCALARS, max_size=5),
    "object": JSON.filter(lambda content: content is not None),
}
TOPICS = TEXTS.filter(bool).filter(lambda text: len(text.encode()) <= 255).map("topic:{}".format)
TIMES = st.integers(0, (1 << 48) - 1).map(lambda milliseconds: milliseconds / 1000)


@st.composite
def _messages(draw: st.DrawFn) -> JmsMessage:
    kind = draw(st.sampled_from(BODY_TYPES))
    return jms_message(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(0, 2**32 - 1) | st.integers(0, 2**64 - 1)),
        draw(TOPICS),
        draw(CONTENTS[kind]),
        body_type=kind,
        properties=Properties(draw(FIELDS)),
        priority=draw(st.integers(0, 9)),
        sent_at=draw(TIMES),
        expires_at=draw(TIMES | st.just(inf)),
        instance=draw(st.integers(0, 65_535)),
        correlation_id=draw(TEXTS),
        reply_to=draw(TOPICS | st.just("")),
        type=draw(TEXTS),
        is_persistent=draw(st.booleans()),
        is_redelivered=draw(st.booleans()),
    )


MESSAGES = _messages()

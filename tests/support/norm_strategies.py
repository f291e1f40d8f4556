"""Hypothesis strategies for NORM messages: exactly those that fit the wire format."""

from hypothesis import strategies as st

from protocols.norm.identity import info_identity, symbol_identity
from protocols.norm.messages import (
    ACK_FLUSH,
    FLAG_STREAM,
    Ack,
    AckReq,
    Application,
    CcFeedback,
    CcNode,
    Data,
    Eot,
    Extension,
    Flush,
    Fti,
    Info,
    Nack,
    NormMessage,
    Origin,
    Probe,
    RepairAdv,
    Report,
    Squelch,
)
from protocols.norm.requests import (
    FORM_ERASURES,
    FORM_ITEMS,
    FORM_RANGES,
    Item,
    Request,
)
from protocols.norm.stream_coding import stream_fti

__all__ = ["FEC_IDS", "data", "ftis", "messages"]

FEC_IDS = (0, 2, 5, 129)
# Without an FTI a codec assumes 16-bit elements for fec_id 2, so the block number has 16 bits here.
_BLOCK_BITS = {0: 16, 2: 16, 5: 24, 129: 32}
_SYMBOL_BITS = {0: 16, 2: 16, 5: 8, 129: 16}


def bits(n: int) -> st.SearchStrategy[int]:
    """Integers of n bits."""
    return st.integers(0, (1 << n) - 1)


origins = st.builds(Origin, bits(32), bits(16), bits(8), bits(4), bits(4))
fec_ids = st.sampled_from(FEC_IDS)
payloads = st.binary(max_size=64)


def extensions(*without: int) -> st.SearchStrategy[tuple[Extension, ...]]:
    """Header extensions of types that the message does not define."""
    short = st.builds(Extension, st.integers(128, 255), st.binary(min_size=3, max_size=3))
    long = st.integers(1, 5).flatmap(
        lambda words: st.builds(Extension, st.integers(0, 127), st.binary(min_size=words * 4 - 2, max_size=words * 4 - 2))
    )
    return st.lists((short | long).filter(lambda extension: extension.het not in without), max_size=2).map(tuple)


@st.composite
def ftis(draw: st.DrawFn, fec_id: int) -> Fti:
    """Draw an FTI of a possible coding."""
    m = draw(st.sampled_from((8, 16))) if fec_id == 2 else 8
    most = 255 if m == 8 else 65535
    block = draw(st.integers(1, most))
    parity = 0 if fec_id == 0 else draw(st.integers(0, most - block))
    segment = draw(st.integers(1, 65535))
    block_bits = {0: 16, 2: 32 - m, 5: 24, 129: 32}[fec_id]
    size = draw(st.integers(0, min((1 << 48) - 1, (segment * block) << block_bits)))
    return Fti(fec_id, size, segment, block, parity, m)


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Draw DATA with or without FTI, inside its object or not."""
    fec_id = draw(fec_ids)
    fti = draw(st.none() | ftis(fec_id))
    eight = fti is not None and fti.m == 8 and fec_id == 2
    block = draw(bits(24 if eight else _BLOCK_BITS[fec_id]))
    symbol = draw(bits(8 if eight else _SYMBOL_BITS[fec_id]))
    flags = draw(bits(8))
    # The blocks of a stream have one length, whatever the size of the sender's buffer, which FTI has.
    coding = fti if fti is None or not flags & FLAG_STREAM else stream_fti(fti)
    block_length = draw(bits(16)) if fec_id == 129 else coding.partition.length(block) if coding else 0
    origin, object_id, payload = draw(origins), draw(bits(16)), draw(payloads)
    # Without a description the codec takes m for 16, as NRL NORM.
    identity = symbol_identity(origin.source_id, object_id, block, symbol, coding, 16 if fec_id == 2 else 8)
    named = draw(bits(16)), flags, fec_id, object_id, block, symbol, block_length
    return Data(origin, *named, fti, payload, len(payload), identity, draw(extensions(64)))


@st.composite
def infos(draw: st.DrawFn) -> Info:
    """Draw INFO with or without FTI."""
    fec_id, origin, object_id = draw(fec_ids), draw(origins), draw(bits(16))
    fti = draw(st.none() | ftis(fec_id))
    identity = info_identity(origin.source_id, object_id)
    head = origin, draw(bits(16)), draw(bits(8)), fec_id, object_id
    return Info(*head, fti, draw(payloads), identity, draw(extensions(64)))


@st.composite
def symbols(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    """Draw fec_id, object, block, symbol and block length as in FLUSH, SQUELCH and repair items."""
    fec_id = draw(fec_ids)
    length = draw(bits(16)) if fec_id == 129 else 0
    return fec_id, draw(bits(16)), draw(bits(_BLOCK_BITS[fec_id])), draw(bits(_SYMBOL_BITS[fec_id])), length


items = symbols().map(lambda named: Item(*named))
pairs = st.lists(st.tuples(items, items), max_size=3).map(lambda ends: tuple(item for pair in ends for item in pair))
requests = st.builds(
    Request, st.sampled_from((FORM_ITEMS, FORM_ERASURES)), bits(8), st.lists(items, max_size=4).map(tuple)
) | st.builds(Request, st.just(FORM_RANGES), bits(8), pairs)
some_requests = st.lists(requests, max_size=3).map(tuple)
feedback = st.none() | st.builds(CcFeedback, bits(16), bits(8), bits(8), bits(16), bits(16), bits(16))
node_ids = st.lists(bits(32), max_size=4).map(tuple)
cc_nodes = st.lists(st.builds(CcNode, bits(32), bits(8), bits(8), bits(16)), max_size=4).map(tuple)


@st.composite
def flushes(draw: st.DrawFn) -> Flush:
    """Draw CMD(FLUSH)."""
    fec_id, object_id, block, symbol, length = draw(symbols())
    lists = draw(node_ids), draw(extensions())
    return Flush(draw(origins), draw(bits(16)), fec_id, object_id, block, symbol, length, *lists)


@st.composite
def squelches(draw: st.DrawFn) -> Squelch:
    """Draw CMD(SQUELCH)."""
    fec_id, object_id, block, symbol, length = draw(symbols())
    lists = draw(st.lists(bits(16), max_size=4).map(tuple)), draw(extensions())
    return Squelch(draw(origins), draw(bits(16)), fec_id, object_id, block, symbol, length, *lists)


probes = st.builds(
    Probe, origins, bits(16), bits(16), bits(32), bits(32), st.none() | bits(16), cc_nodes, bits(8), extensions(128)
)
other_commands = (
    st.builds(Eot, origins, bits(16))
    | st.builds(RepairAdv, origins, bits(16), bits(8), some_requests, feedback, extensions(3))
    | st.builds(AckReq, origins, bits(16), bits(8), bits(8), node_ids, extensions())
    | st.builds(Application, origins, bits(16), payloads, extensions())
)
nacks = st.builds(Nack, bits(32), bits(16), bits(32), bits(16), bits(32), bits(32), some_requests, feedback, extensions(3))
_acked = bits(32), bits(16), bits(32), bits(16)
acks = st.builds(
    Ack, *_acked, bits(8).filter(lambda kind: kind != ACK_FLUSH), bits(8), bits(32), bits(32), payloads, feedback, extensions(3)
) | st.builds(
    Ack, *_acked, st.just(ACK_FLUSH), bits(8), bits(32), bits(32), st.just(b""), feedback, extensions(3), st.none() | items
)
reports = st.builds(Report, bits(32), bits(16), payloads)


def messages() -> st.SearchStrategy[NormMessage]:
    """Any NORM message."""
    return data() | infos() | flushes() | squelches() | probes | other_commands | nacks | acks | reports

"""The statistics of NORM: the parts of its snapshots for objects, and the measures that only it has (protocols/snapshot.py)."""

from typing import Final

from protocols.norm.ack_collector import AckCollector
from protocols.norm.congestion.states import ControlState, FeedbackState
from protocols.norm.messages import ANY_NODE, FLAG_FILE
from protocols.norm.position import TransmitPosition
from protocols.norm.rx_object import RxObject
from protocols.norm.tx_object import TxObject
from protocols.range_set import RangeSet
from protocols.snapshot import Measure, Snapshot

__all__ = ["MEASURES", "acknowledgement", "control", "feedback", "object_received", "object_sent"]

MEASURES: Final = (
    Measure("grtt", "group round-trip time that the sender advertises", "seconds", "gauge"),
    Measure("grtt_measured", "group round-trip time before it is quantised and bounded", "seconds", "gauge"),
    Measure("backoff_factor", "GRTTs over which the back-off of a NACK spreads", "", "gauge"),
    Measure("parity_held", "parity segments that wait for the rest of their block", "", "gauge"),
    Measure("loss_event_rate", "loss events per packet, as congestion control counts them (RFC 5348 5)", "ratio", "gauge"),
    Measure("receive_rate", "rate at which content arrives, as the receiver feeds it back", "bytes/s", "gauge"),
    Measure("loss_events", "losses that congestion control counts: those within one round-trip time are one"),
    Measure("clr_changes", "how often another receiver became the current limiting receiver (CLR)"),
    Measure("cc_feedback_received", "feedback with a state of congestion control received"),
    Measure("nodes_confirmed", "nodes that have confirmed the watermark", "", "gauge"),
    Measure("nodes_missing", "nodes that are to confirm the watermark and have not", "", "gauge"),
    Measure("times_asked", "how often a node was asked for the ACK that is missing", "", "gauge"),
    Measure("strangers", "messages in the sender's name from other hosts"),
)


def object_sent(item: TxObject, is_stream: bool) -> Snapshot:
    """Return the statistics of an object in the sender's window."""
    due = sum([mask.bit_count() for masks in (item.repairs, item.wanted) for mask in masks.values()])
    due += _symbols(item, item.repair_blocks) + _symbols(item, item.wanted_blocks)
    due += item.info_wanted or (item.info_due and item.info_sent)
    values = {"bytes_sent": item.octets_sent, "repairs_due": due}
    if not is_stream:
        values["size"] = item.partition.size
    rest = "sent" if not item.unsent else "sending" if item.block or item.symbol or item.info_sent else "waiting"
    state = "repairing" if due else "open" if item.is_open else rest
    kind = "stream" if is_stream else "file" if item.flags & FLAG_FILE else "data"
    return Snapshot("object", str(item.object_id), values, {"kind": kind, "state": state})


def _symbols(item: TxObject, blocks: RangeSet) -> int:
    """Return the number of source symbols of whole blocks."""
    first_of = item.partition.first
    return sum([first_of(last + 1) - first_of(first) for first, last in blocks])


def object_received(key: int, item: RxObject | None, position: TransmitPosition) -> Snapshot:
    """Return the statistics of an incomplete object while its sender is at `position`; None: nothing of it was received."""
    if item is None:
        return Snapshot("object", str(key), states={"state": "unknown"})
    missing = item.symbols_missing
    held = 0 if item.parity is None else sum([mask.bit_count() for _, mask in item.parity.items()])
    values = {"bytes_received": item.octets_at(position), "segments_missing": missing, "parity_held": held}
    if not item.is_stream:
        values["size"] = item.fti.object_size
    kind = "stream" if item.is_stream else "object"
    return Snapshot("object", str(key), values, {"kind": kind, "state": "receiving" if item.has_no_gaps else "incomplete"})


def control(state: ControlState) -> Snapshot:
    """Return the statistics of a sender's congestion control, with those of the receivers that limit it."""
    values = {"rate": state.rate, "clr_changes": state.changes}
    receivers = [Snapshot("receiver", str(node), {}, {"role": "PLR"}) for node in state.plrs if node != state.clr]
    if state.clr is not None:
        limiting = {"rtt": state.clr_rtt, "loss_event_rate": state.clr_loss, "rate": state.clr_rate}
        receivers.insert(0, Snapshot("receiver", str(state.clr), limiting, {"role": "CLR"}))
    return Snapshot("congestion", "", values, {"phase": state.phase}, receivers)


def acknowledgement(acks: AckCollector) -> tuple[Snapshot, ...]:
    """Return the state of each node at the watermark that is served now, or was served last; nothing if there was none."""
    watermark, is_over = acks.first or acks.last, acks.first is None
    if watermark is None:
        return ()
    asked = {node: times for node, times in watermark.asked.items() if node != ANY_NODE}
    confirmed = watermark.acknowledged
    receivers = [Snapshot("receiver", str(node), {}, {"state": "confirmed"}) for node in confirmed]
    state = "missing" if is_over else "asked"
    for node, times in asked.items():
        receivers.append(Snapshot("receiver", str(node), {"times_asked": times}, {"state": state if times else "not asked"}))
    values = {"nodes_confirmed": len(confirmed), "nodes_missing": len(asked)}
    over = "incomplete" if asked or not confirmed else "confirmed"
    phase = over if is_over else "asking" if watermark.is_reached else "waiting"
    return (Snapshot("watermark", str(watermark.object_id), values, {"state": phase}, receivers),)


def feedback(state: FeedbackState) -> Snapshot:
    """Return what a receiver feeds back to the congestion control of a sender."""
    values = {
        "rtt": state.rtt,
        "loss_event_rate": state.loss,
        "rate": state.rate,
        "receive_rate": state.receive_rate,
        "loss_events": state.loss_events,
    }
    return Snapshot("congestion", "", values, {"role": state.role or "receiver"})

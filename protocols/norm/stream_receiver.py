"""The NORM receiver with streams and statistics."""

from protocols.acknowledgement import AckAnswerer
from protocols.norm.receiver import NormReceiver
from protocols.norm.rx_stream import RxStream
from protocols.snapshot import Snapshot, buffers
from protocols.stream import StreamAcceptor

__all__ = ["NormStreamReceiver"]


class NormStreamReceiver(NormReceiver):
    """A `NormReceiver` that receives streams, too, if the application accepts them (`protocols.stream.StreamReceiver`).

    It also has statistics (protocols/snapshot.py).
    """

    __slots__ = ()

    def accept_streams(self, acceptor: StreamAcceptor) -> None:
        """Offer streams to the application, by this function; without it they are ignored."""
        self.session.extras.stream_acceptor = acceptor

    def answer_acks(self, answer: AckAnswerer) -> None:
        """Ask the application, by this function, before a request with content is acknowledged."""
        self.session.extras.ack_answerer = answer

    def resume_stream(self, node: int, object_id: int, now: float) -> None:
        """Go on with a stream of the sender `node` whose sink was full; call through `Host.call`."""
        sender = self._known(node)
        if sender is not None:
            sender.resume(object_id, now)
            self.settle(sender)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return what is kept of objects, and the most blocks kept of one stream."""
        kept = super().held()
        blocks = (0, 0)
        for sender in self.senders():
            for item in sender.objects.values():
                if isinstance(item, RxStream):
                    blocks = max(blocks, (item.blocks_held, item.capacity + 1))
        kept["stream blocks"] = blocks
        return kept

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of each sender with its objects."""
        session, senders = self.session, self.senders()
        pending = [(item, sender.position) for sender in senders for item in sender.objects.values() if item is not None]
        values = {
            **self.counts(),
            "nacks_heard": session.nacks_heard,
            "bytes_received": session.octets_received + sum([item.octets_at(position) for item, position in pending]),
            "parity_used": session.counted("parity_used") + sum([item.parity_used for item, _ in pending]),
        }
        parts = (*[sender.snapshot(now) for sender in senders], *buffers(self.held()))
        return Snapshot("session", session.group.name, values, {"role": "receiver"}, parts)

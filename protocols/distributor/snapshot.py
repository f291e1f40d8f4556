"""The statistics of the Distributor as data: what its counters mean, and what its machines report."""

from protocols.snapshot import Measure

__all__ = ["MEASURES"]


def _counters(**helps: str) -> list[Measure]:
    return [Measure(name, text) for name, text in helps.items()]


MEASURES = (
    *_counters(
        requests_sent="requests for retransmission that a subscriber sent",
        requests_received="requests for retransmission that a publisher received",
        requests_heard="requests for retransmission of others that a subscriber heard",
        requests_suppressed="segments not requested at their time, because another subscriber had requested them",
        requests_merged="requests for nothing but what already waits to be retransmitted",
        naks_sent="datagrams that state what has left the retransmission cache",
        repairs_received="retransmissions received, whoever requested them",
        overflowed="segments dropped because too many wait for earlier ones",
        segments_lost="segments given up, because they were refused or requested too often",
        messages_unmatched="updates for which there is no subscription",
        messages_foreign="updates that are no messages of this laboratory",
        publishers_heard="publishers that were heard",
        publishers_gone="publishers that fell silent",
    ),
    Measure("segments_queued", "datagrams that wait for the rate or the network", "", "gauge"),
    Measure("ranges_missing", "ranges of segments that are missing", "", "gauge"),
)
"""Names beside those of `protocols.snapshot`."""

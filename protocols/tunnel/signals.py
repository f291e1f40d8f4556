"""Congestion signals of tunnels: losses to each other, and losses and the use of the ring to the publishers of a site."""

from math import inf
from typing import Final

from protocols.tunnel.memory import LossMeter
from protocols.tunnel.messages import FULL_SHARE, Brake, Report
from protocols.tunnel.peers import Peer, Peers

__all__ = ["INTERVAL", "Signals"]

INTERVAL: Final = 0.1
"""Seconds between two reports, and between two brakes."""
QUEUE: Final = 0.2
"""Seconds for which datagrams to a peer may wait on the way; twice as much counts as a full ring."""
_MASK: Final = 0xFFFFFFFF


class Signals:
    """The reports and brakes of one tunnel; `due` is when the next are to be sent, in seconds.

    Losses before the tunnel show in the sequence numbers of the site's senders, those behind it in the reports of peers.
    """

    __slots__ = ("_brakes", "_heard", "_peers", "_ring", "_ring_most", "due")

    def __init__(self, peers: Peers, ring: int, brakes: bool) -> None:
        self._peers, self._ring, self._brakes = peers, ring, brakes
        self._heard = LossMeter(16)
        self._ring_most = 0
        self.due = inf

    def heard(self, sender: int, sequence: int) -> None:
        """Note a packet of a sender of this site."""
        self._heard.take(sender, sequence)

    def waiting(self, packets: int) -> None:
        """Note how many packets wait in the ring."""
        self._ring_most = max(self._ring_most, packets)

    def came(self, peer: Peer, sequence: int, requests_reports: bool, now: float) -> None:
        """Note a datagram of a peer, which may request reports of losses."""
        peer.meter.take(None, sequence)
        if requests_reports:
            peer.requests_reports = True
            self.due = min(self.due, now + INTERVAL)

    def reported(self, peer: Peer, report: Report, now: float) -> None:
        """Note a peer's report of what came and what is missing."""
        received, lost = report.received - peer.last_report[0] & _MASK, max(0, report.lost - peer.last_report[1])
        if received < _MASK >> 1:
            # Otherwise it is an old one, or the peer began anew.
            peer.lost = max(peer.lost, _share(received, lost))
        peer.last_report = report.received, report.lost
        peer.backlog.report(report.received + report.lost, now)

    def reports(self, site: int) -> list[tuple[Peer, Report]]:
        """Return the reports that are due, and for whom they are."""
        found = []
        for peer in self._peers:
            if peer.requests_reports:
                found.append((peer, Report(site, peer.meter.received & _MASK, peer.meter.lost & _MASK)))
                peer.requests_reports = False
        return found

    def brake(self, site: int, now: float) -> Brake | None:
        """Return the next BRAKE, None for none; to be called when `due`.

        A BRAKE is sent without congestion, too, so that publishers know of the tunnel before there is any.
        """
        self.due = now + INTERVAL if self._brakes else inf
        if not self._brakes:
            return None
        behind = max((peer.lost for peer in self._peers), default=0.0)
        waits = max((peer.backlog.seconds for peer in self._peers), default=0.0)
        if waits > QUEUE / 2:
            # What waits is not lost yet, and the queue grows by it.
            behind = max(behind, *(peer.backlog.excess for peer in self._peers))
        ring = max(self._ring_most / self._ring, waits / (2 * QUEUE))
        lost = 1 - (1 - _share(*self._heard.since())) * (1 - behind)
        brake = Brake(site, round(FULL_SHARE * min(1.0, ring)), round(FULL_SHARE * lost))
        self._ring_most = 0
        for peer in self._peers:
            peer.lost = 0.0
        return brake


def _share(received: int, lost: int) -> float:
    return lost / max(1, lost + received)

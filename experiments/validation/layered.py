"""A coding layer below repetition: N2 over links that lose a packet only if its block is not decodable.

The links draw the loss of every packet of a block, parity included, from the simulator's keyed random streams; a lost packet is
delivered if k of the n packets of its block arrived. A repeated packet travels in a block of its own, as the closed form
assumes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from experiments.validation.arq import transmissions
from experiments.validation.references import Families, Measured, Reference, mean_of
from experiments.validation.testbed import StarTestbed
from protocols.rng import key_of
from topologies.channels import ContentLoss
from topologies.draws import member_keys
from topologies.losses import GroupLoss

__all__ = ["FAMILIES", "Layered"]

DELAY = 1e-6
DRAWS = 2e7
"""Budget of loss draws at full effort."""
PACKETS = 5000


class _LayeredLinkGroup(GroupLoss):
    """Last hops of all receivers, including the decoder."""

    __slots__ = ("_blocks", "_code", "_fresh", "_links", "_sent")

    def __init__(self, keys: npt.NDArray[np.uint64], p: float, k: int, n: int) -> None:
        super().__init__(keys, p)
        self._links = len(keys)
        self._code = k, n
        self._blocks: dict[int, list[list[int]]] = {}
        self._sent: set[int] = set()
        self._fresh = 0

    def losers(self, identity: int | None, skip: int = -1) -> Sequence[int]:
        """Return the members that lose the packet and cannot decode it."""
        if identity is None:
            return ()
        if identity in self._sent:
            self._fresh += 1
            return self._draw_block(2 * self._fresh + 1)[0]
        self._sent.add(identity)
        block, place = divmod(identity & 0xFFFFFFFF, self._code[0])
        if block not in self._blocks:
            self._blocks = {block: self._draw_block(2 * block)}
        return self._blocks[block][place]

    def lost(self, identity: int | None, member: int) -> bool:
        """Return False: only control packets go to a single member."""
        assert identity is None
        return False

    def _draw_block(self, number: int) -> list[list[int]]:
        """Return for each source packet of a block the members that cannot recover it."""
        k, n = self._code
        lost = np.zeros((n, self._links), bool)
        for symbol in range(n):
            lost[symbol, list(super().losers(number << 8 | symbol))] = True
        doomed = lost.sum(axis=0) > n - k
        return [np.flatnonzero(lost[symbol] & doomed).tolist() for symbol in range(k)]


class Layered(ContentLoss):
    """Independent loss of content below a code of `k` source packets in `n`."""

    k: int
    n: int

    def group(self, key: int, count: int) -> GroupLoss | None:
        """Return the loss sampler of sibling links."""
        return _LayeredLinkGroup(member_keys(key, count), self.p, self.k, self.n)


def _layered(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure transmissions per source packet.

    Blocks are the independent samples, because packets of one block are correlated.
    """
    params = reference.params
    k, n, receivers = params["k"], params["n"], params["R"]
    cost = receivers * (4.0 + n * (1.0 / k + reference.values["value"] - n / k))
    packets = max(int(effort * min(PACKETS, DRAWS / cost)) // k, 50) * k
    star = StarTestbed(receivers, delay=DELAY, channel=Layered(p=params["p"], k=k, n=n))
    counts = transmissions(star, packets, key_of(1, reference.id) % 2**32)
    return {"value": mean_of([n / k * sum(counts[at : at + k]) / k for at in range(0, packets, k)])}


FAMILIES: Families = {"fec_layered": _layered}

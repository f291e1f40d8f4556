"""The ladder of an explanation: the packets of the chain, each on a numbered line, and those between them folded."""

from experiments.captures.trace_file import TracedPacket
from experiments.drawing.ladder_excerpt import MOST_SHOWN, FoldedPackets, LadderExcerpt, LadderItem, folded
from experiments.explain.explanation import Explanation
from experiments.explain.history import History

__all__ = ["chain_ladder"]

_AFTER = 0.05
"""Share of the time of the chain that is shown after it."""


def chain_ladder(history: History, explanation: Explanation) -> LadderExcerpt | None:
    """Return the excerpt that shows the chain, and give its steps their lines; None for a chain without packets."""
    steps = [step for step in explanation.chain if step.packet]
    if not steps:
        return None
    named = frozenset(step.packet for step in steps)
    begin = min(step.time for step in steps)
    last = max(step.time for step in steps)
    end = last + _AFTER * (last - begin)
    others = [history.packets[number].node for number in named]
    hosts = tuple(dict.fromkeys([history.sender, *others, history.receiver]))
    between = [packet for packet in history.packets.values() if begin <= packet.time <= end and packet.node in hosts]
    shown = _lines(between, named)
    lines = {number: line for line, item in enumerate(shown, 1) for number in _numbers(item)}
    for step in steps:
        step.line = lines.get(step.packet, 0)
    decisions = tuple(event for event in history.decisions if begin <= event.time <= end and event.node in hosts)
    return LadderExcerpt(begin, end, hosts, shown, decisions, is_numbered=True)


def _lines(packets: list[TracedPacket], named: frozenset[int]) -> tuple[LadderItem, ...]:
    """Return the lines: packets of the chain alone, all others folded as far as there are too many."""
    shown = folded(packets, frozenset(), named)
    return (
        shown
        if len(shown) <= MOST_SHOWN
        else folded([packet for packet in packets if packet.number in named], frozenset(), named)
    )


def _numbers(item: LadderItem) -> list[int]:
    return [packet.number for packet in item.packets] if isinstance(item, FoldedPackets) else [item.number]

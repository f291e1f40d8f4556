"""Find the chain of causes of a late or missing object in the record of a run."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import median

from experiments.captures.trace_file import TracedPacket, TraceEvent
from experiments.doctor.network_rules import quoted
from experiments.explain.content import Part, carried_by, parts_of
from experiments.explain.explanation import Cause, Explanation, Outcome, Step
from experiments.explain.history import Fate, History
from experiments.explain.rounds import Round, repairs_between, rounds_of
from experiments.output.counted import counted
from protocols.serial import before
from topologies.units import format_rate

__all__ = ["explain"]

_SHOWN = 3
"""Lost packets, and repairs of a round, that the chain names."""
_PAUSE, _SHORTEST_PAUSE = 20, 0.05
"""A gap between new packets of a sender is a pause from so many times the usual gap on, and so many seconds."""
_FRACTION, _OF_OUTAGE = 0.4, 0.75
"""Share of the delay from which on failed requests are its cause, and not the loss, or the outage, that made them necessary."""
_HOST_ID = 0xFFFFFF
_OUTAGES = ("partition", "crash", "absent")
_AT_ONCE = 0.02
"""Seconds within which a receiver has an object of which the last packet was captured."""
_SLOW, _CLEARLY = 0.05, 5
"""A sender is slow if it uses less than this share of the path, and takes so many times as long as the repairs."""


def explain(history: History) -> Explanation:
    """Explain the outcome of the object of a history."""
    return _Analysis(history).explanation()


@dataclass
class _Analysis:
    history: History
    parts: dict[str, Part] = field(init=False)
    fates: dict[int, Fate] = field(init=False)
    steps: list[Step] = field(default_factory=list)
    costs: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds of rounds that failed, by cause."""
    reasons: dict[str, str] = field(default_factory=dict)
    """A sentence for each cause."""

    def __post_init__(self) -> None:
        history = self.history
        content = [packet for packet in history.packets.values() if self._is_of_sender(packet)]
        self.fates = {packet.number: history.fate(packet, history.receiver) for packet in content}
        arrivals = {number: fate.when for number, fate in self.fates.items() if fate.when < history.end}
        self.parts = parts_of(content, history.object_id, arrivals)

    def _is_of_sender(self, packet: TracedPacket) -> bool:
        """Return whether a packet is content of the sender; of SRM, other members repeat it."""
        if carried_by(packet) is None:
            return False
        return packet.node == self.history.sender or (packet.repair and packet.node != self.history.receiver)

    # -- the outcome -------------------------------------------------------------------------------------------------------

    def explanation(self) -> Explanation:
        history, outcome = self.history, self._outcome()
        critical = self._critical()
        if critical is not None and not critical.lost:
            # What was lost was repaired while the rest was sent.
            lossy = [part for part in self.parts.values() if part.lost]
            critical = max(lossy, key=lambda part: part.complete - part.first_sent, default=critical)
        if critical is not None and critical.lost:
            self._chain(critical)
        self._ends(outcome)
        spent = self._spent(outcome)
        cause = self._cause(outcome, critical, spent)
        self.steps.sort(key=lambda step: step.time)
        for step in self.steps:
            step.frames = history.frames.get(step.packet, {})
        return Explanation(
            history.kind,
            history.sender,
            history.receiver,
            history.object_id,
            outcome,
            cause,
            spent,
            self.steps,
            history.unknown,
        )

    def _outcome(self) -> Outcome:
        for event in self.history.decisions:
            if event.node != self.history.receiver or not self._names_object(event):
                continue
            if event.name == "object_received":
                return Outcome("received", event.time, f"complete at {event.time:.6g} s")
            if event.name in ("object_aborted", "objects_aborted"):
                return Outcome("aborted", event.time, f"aborted at {event.time:.6g} s: {event.data['reason']}")
        complete = max((part.complete for part in self.parts.values()), default=inf)
        if complete < inf and self._is_sent and self.history.kind != "trace":
            if self._is_later_than(complete):
                text = f"all of it had come to the capture at {complete:.6g} s, and the kernel lost packets behind that"
                return Outcome("unknown", self.history.completed_at, text)
            return Outcome("received", complete, f"all of it had arrived at {complete:.6g} s")
        return Outcome("missing", None, f"incomplete when the record ends, at {self.history.end:.6g} s")

    def _is_later_than(self, captured: float) -> bool:
        """Return whether the receiver may have had the object later than its capture, whose last part came at `captured`."""
        if not self.history.hides_losses:
            return False
        completed = self.history.completed_at
        return completed is None or completed - captured > _AT_ONCE

    def _names_object(self, event: TraceEvent) -> bool:
        wanted, data = self.history.object_id, event.data
        # The upper bits of an id number the session of a host with several.
        if self.history.sender_id is not None and (int(data.get("sender", 0)) ^ self.history.sender_id) & _HOST_ID:
            return False
        if event.name == "objects_aborted":
            return (wanted - int(data["first"])) % 0x10000 < int(data["count"])
        return data.get("object_id") == wanted

    @property
    def _is_sent(self) -> bool:
        """Whether the recording has a transmission of every segment of the object."""
        history = self.history
        if history.kind == "trace":
            return any(
                event.node == history.sender
                and event.name == "object_sent"
                and event.data.get("object_id") == history.object_id
                for event in history.decisions
            )
        count = sum(part.needed for part in self.parts.values() if part.name != "info")
        return count >= history.segments if history.segments else bool(self.parts)

    def _critical(self) -> Part | None:
        """Return the part that was complete last; of those that never were, the one sent first."""
        parts = [part for part in self.parts.values() if part.needed]
        if not parts:
            return None
        never = [part for part in parts if part.complete == inf]
        return min(never, key=lambda part: part.first_sent) if never else max(parts, key=lambda part: part.complete)

    # -- the chain ---------------------------------------------------------------------------------------------------------

    def _chain(self, part: Part) -> None:
        """Tell what was lost of a part, when that was noticed, and what came of each request."""
        history, lost = self.history, part.lost
        for packet in lost[:_SHOWN]:
            self._lost(packet)
        if len(lost) > _SHOWN:
            more = f"and {counted(len(lost) - _SHOWN, 'packet', more='more')} of {self._named(part)}"
            self._add("more lost", lost[_SHOWN].time, history.sender, more)
        self._noticed(part)
        rounds = rounds_of(history, part, lost[0].time)
        shown: set[int] = set()
        for each in rounds:
            self._request(each)
            self._answer(part, each, shown)
            if each is not rounds[-1] or part.complete == inf or (each.asked and each.heard_at == inf):
                self._failed(each, part)
            self._slow_answer(each)
        self._repairs(repairs_between(part, lost[0].time, part.complete + 1e-12), part, shown)

    def _lost(self, packet: TracedPacket) -> None:
        fate = self.fates[packet.number]
        self._add("sent", packet.time, packet.node, f"sends {packet.label}", packet)
        where = self._place_of_loss(packet)
        if fate.cause:
            self._add("lost", fate.at, where, f"{packet.label}: {fate.text}", packet)

    def _place_of_loss(self, packet: TracedPacket) -> str:
        copies = [copy.link for copy in packet.missed if copy.node == self.history.receiver or copy.node in self.history.path]
        return copies[0] if copies else self.history.receiver

    def _noticed(self, part: Part) -> None:
        """Describe the packet by which the receiver could detect the loss."""
        history, since = self.history, part.lost[0].time
        later = [
            (packet.received[history.receiver], packet)
            for packet in history.packets.values()
            if packet.node == history.sender and packet.time > since and history.receiver in packet.received
        ]
        arrived = [(history.fate(packet, history.receiver).when, packet.number) for _, packet in later[:64]]
        when, number = min(arrived, default=(inf, 0))
        if when < inf:
            packet = history.packets[number]
            self._add("noticed", when, history.receiver, f"{packet.label} arrives and shows that something is missing", packet)

    def _request(self, each: Round) -> None:
        receiver = self.history.receiver
        if each.due is not None:
            self._add("back-off", each.begin, receiver, f"begins a back-off; a NACK is due at {each.due:.6f} s")
        if each.suppressed_by is not None and each.suppressed_at is not None:
            other = each.suppressed_by
            due = "" if each.due is None else f", due at {each.due:.6f} s,"
            text = f"its NACK{due} is suppressed by that of {other.node} ({other.brief})"
            self._add("suppressed", each.suppressed_at, receiver, text, other)
        for packet in each.requests:
            self._add("request", packet.time, receiver, f"sends {packet.label}", packet)
        if each.is_needless:
            self._add("needless", each.due or each.begin, receiver, "sends no NACK: nothing is missing any more")
        for packet, fate in zip(each.asked, each.fates, strict=True):
            if fate.when < inf:
                self._add("request arrives", fate.when, self.history.sender, f"{packet.label} of {packet.node} arrives", packet)
            else:
                what = f"{packet.label} of {packet.node} does not reach {self.history.sender}: {fate.text}"
                self._add("request lost", min(fate.at, self.history.end), packet.node, what, packet)

    def _answer(self, part: Part, each: Round, shown: set[int]) -> None:
        event = each.aggregation
        if event is not None:
            text = f"collects NACKs until {float(event.data['until']):.6f} s"
            self._add("aggregation", max(event.time, each.heard_at), self.history.sender, text)
        self._repairs(each.repairs, part, shown)

    def _repairs(self, repairs: list[TracedPacket], part: Part, shown: set[int]) -> None:
        """Tell of the first repairs, and of the one that completed the part."""
        last = None if part.last_needed is None else part.last_needed.number
        for place, packet in enumerate(repairs):
            fate = self.fates[packet.number]
            is_late = part.complete < fate.when < inf
            if packet.number in shown or is_late or (place >= _SHOWN and packet.number != last):
                continue
            shown.add(packet.number)
            self._add("repair", packet.time, packet.node, f"sends {packet.label} as a repair", packet)
            if fate.when < inf:
                ends = f", and completes {self._named(part)}" if packet.number == last else ""
                self._add("repair arrives", fate.when, self.history.receiver, f"{packet.label} arrives{ends}", packet)
            else:
                self._add("repair lost", fate.at, self._place_of_loss(packet), f"{packet.label}: {fate.text}", packet)

    def _ends(self, outcome: Outcome) -> None:
        """Tell of the purge of the object, of squelches, and of the outcome."""
        history = self.history
        for event in history.decisions:
            if event.node == history.sender and event.name == "object_purged" and event.data["object_id"] == history.object_id:
                self._add(
                    "purged", event.time, history.sender, f"drops object {history.object_id}; it can't be repaired any more"
                )
        heard = [packet for packet in self._squelches() if history.receiver in packet.received]
        if outcome.state != "received" and heard:
            packet = heard[0]
            text = f"sends SQUELCH {packet.brief}, so object {history.object_id} is not repaired any more"
            self._add("squelch", packet.time, packet.node, text, packet)
            self._add("squelch arrives", packet.received[history.receiver], history.receiver, f"{packet.label} arrives", packet)
        if outcome.time is not None:
            word = "complete" if outcome.state == "received" else "aborted"
            self._add(word, outcome.time, history.receiver, f"object {history.object_id}: {outcome.text}")

    def _add(self, what: str, time: float, node: str, text: str, packet: TracedPacket | None = None) -> None:
        self.steps.append(Step(what, time, node, text, packet.number if packet is not None else 0))

    def _named(self, part: Part) -> str:
        if part.name == "info":
            return f"the NORM_INFO of object {self.history.object_id}"
        kind = "block" if self.history.protocol == "norm" else "unit"
        return f"{kind} {self.history.object_id}.{part.name}"

    # -- the cause ---------------------------------------------------------------------------------------------------------

    def _failed(self, each: Round, part: Part) -> None:
        """Note what a round that brought no complete repair cost, and why."""
        if each.is_needless:
            return
        name, text = self._failure(each, part)
        self.costs[name] += max(0.0, each.end - each.begin)
        self.reasons.setdefault(name, text)

    def _slow_answer(self, each: Round) -> None:
        """Note how long the sender took to read a request, and to repair behind the time in which it collects requests."""
        event, heard = each.aggregation, each.heard_at
        if event is None or heard == inf:
            return
        begins = min((packet.time for packet in each.repairs), default=inf)
        collected = max(float(event.data["until"]), heard)
        late = max(0.0, event.time - heard) + (max(0.0, begins - collected) if begins < inf else 0.0)
        if late >= _SHORTEST_PAUSE:
            self.costs["slow sender"] += late
            text = f"{self.history.sender} answered the request for what was lost {quoted(late)} later than its timing says"
            self.reasons.setdefault("slow sender", text)

    def _failure(self, each: Round, part: Part) -> tuple[str, str]:
        history, lost = self.history, [fate for fate in each.fates if fate.when == inf]
        is_heard = each.heard_at < inf
        if each.suppressed_by is not None and not each.repairs:
            by = each.suppressed_by.node
            why = (
                f", which did not reach {history.sender}: {lost[0].text}"
                if lost and not is_heard
                else ", and no repair followed"
            )
            return "suppressed request", f"its request for {self._named(part)} was suppressed by that of {by}{why}"
        if lost and not is_heard:
            cause = lost[0].cause if lost[0].cause not in ("unknown", "end") else "drop"
            return cause, f"its request for {self._named(part)} did not reach {history.sender}: {lost[0].text}"
        missed = [self.fates[packet.number] for packet in each.repairs if self.fates[packet.number].when == inf]
        if missed:
            cause = missed[0].cause if missed[0].cause not in ("unknown", "end") else "drop"
            lost_repairs = counted(len(missed), "repair", len(each.repairs))
            return cause, f"{lost_repairs} of {self._named(part)} lost: {missed[0].text}"
        if each.repairs:
            return "drop", f"the repairs of {self._named(part)} were fewer than it needed"
        if self._purged_at() < inf:
            return "purge", f"{history.sender} had dropped the object"
        if not each.asked:
            return "drop", f"{history.receiver} waited to request {self._named(part)}"
        outage = (
            history.outages.of_host(history.sender, ("crash", "slow"), each.heard_at, each.end) if history.outages else None
        )
        name = "crash" if outage is not None and outage.cause == "crash" else "slow sender"
        return name, f"{history.sender} did not answer the request" + (f": {outage.text}" if outage is not None else "")

    def _purged_at(self) -> float:
        """Return when the sender dropped the object, by its own record or by the first SQUELCH that says so; inf for never."""
        history = self.history
        times = [
            event.time
            for event in history.decisions
            if event.node == history.sender and event.name == "object_purged" and event.data["object_id"] == history.object_id
        ]
        times += [packet.time for packet in self._squelches()]
        return min(times, default=inf)

    def _squelches(self) -> list[TracedPacket]:
        """Return the SQUELCH messages of the sender that refuse to repair the object."""
        history = self.history
        return [
            packet
            for packet in history.packets.values()
            if packet.kind == "squelch"
            and packet.node == history.sender
            and (packet.number in history.squelches or before(history.object_id, int(packet.brief.split(".")[0])))
        ]

    def _originals(self) -> list[TracedPacket]:
        return sorted(
            (packet for part in self.parts.values() for packet in part.first_transmissions()), key=lambda packet: packet.time
        )

    def _spent(self, outcome: Outcome) -> dict[str, float]:
        """Return where the time went, from the submission to the outcome, in seconds."""
        history, originals = self.history, self._originals()
        end = history.end if outcome.time is None else outcome.time
        if not originals:
            return {"waiting": end - (history.begin or 0.0)}
        begin = originals[0].time if history.begin is None else min(history.begin, originals[0].time)
        last = originals[-1]
        transit = history.transit(history.sender, history.receiver)
        arrived = [self.fates[packet.number].when - packet.time for packet in originals if self.fates[packet.number].when < inf]
        complete = min(max([last.time, *(part.complete for part in self.parts.values() if part.needed)]), end)
        queued = max(0.0, max(arrived, default=0.0) - transit)
        baseline = min(last.time + transit, end)
        lossless = not any(part.lost for part in self.parts.values())
        return {
            "waiting": originals[0].time - begin,
            "sending": last.time - originals[0].time,
            "pauses": self._pauses(originals),
            "transit": transit,
            "queues": queued,
            "repair": 0.0 if lossless else max(0.0, complete - baseline),
            "receiver": max(0.0, end - complete) if outcome.state == "received" else 0.0,
        }

    def _pauses(self, originals: list[TracedPacket]) -> float:
        """Return the seconds in which the sender had content left and sent none, beyond its usual gaps."""
        history = self.history
        times = sorted(
            packet.time
            for packet in history.packets.values()
            if packet.node == history.sender
            and originals[0].time <= packet.time <= originals[-1].time
            and carried_by(packet) is not None
        )
        gaps = [after - before for before, after in pairwise(times)]
        usual = median(gaps) if gaps else 0.0
        return sum(gap - usual for gap in gaps if gap > max(_PAUSE * usual, _SHORTEST_PAUSE))

    def _cause(self, outcome: Outcome, critical: Part | None, spent: dict[str, float]) -> Cause:
        if outcome.state == "unknown":
            text = f"what the kernel of {self.history.receiver} lost behind the capture is not known"
            return Cause("unknown", text, 0.0)
        for find in (self._never_sent, self._purge):
            found = find(outcome, critical)
            if found is not None:
                return found
        slow = self._slow(outcome, spent)
        if critical is None or not critical.lost:
            return slow or Cause("none", self._plain_sending(spent), 0.0)
        idle = spent["pauses"] + spent["waiting"]
        if slow is not None and (idle > max(spent["repair"], spent["transit"]) or slow.name == "slow receiver"):
            return slow
        if slow is not None and self._is_much_slower(spent):
            return slow
        return self._network_cause(critical, spent["repair"])

    def _never_sent(self, outcome: Outcome, critical: Part | None) -> Cause | None:
        """Content that was not sent by the end of the record can't be received."""
        history = self.history
        if outcome.state != "missing" or self._is_sent:
            return None
        span = history.end - (history.begin or 0.0)
        outage = (
            history.outages.of_host(history.sender, ("crash",), history.begin or 0.0, history.end) if history.outages else None
        )
        if outage is not None:
            return Cause("crash", f"{history.sender} had not sent all of it: {outage.text}", span)
        sent = sum(part.needed for part in self.parts.values())
        rate = "" if history.rate == inf else f", at {format_rate(history.rate)}"
        return Cause(
            "slow sender",
            f"{history.sender} had sent {counted(sent, 'packet')} of it by the end, after {quoted(span)}{rate}, and not all",
            span,
        )

    def _purge(self, outcome: Outcome, critical: Part | None) -> Cause | None:
        """An object that was dropped before its repair is lost for good, unless the receiver could not ask all the time."""
        history, purged = self.history, self._purged_at()
        is_squelched = outcome.state == "aborted" and "squelched" in outcome.text
        if outcome.state == "received" or not (is_squelched or purged < (outcome.time or history.end)):
            return None
        if critical is not None and critical.lost:
            fate = self.fates[critical.lost[-1].number]
            if fate.cause in ("partition", "crash", "absent") and history.outages is not None:
                outage = history.outages.at_reception(history.sender, history.receiver, min(purged, history.end))
                if outage is not None:
                    return Cause(
                        fate.cause, f"{fate.text}; meanwhile {history.sender} dropped the object", outage.until - fate.at
                    )
        when = f"dropped it at {purged:.6g} s" if purged < inf else "refused to repair it (SQUELCH)"
        text = f"{history.sender} {when}, before {history.receiver} had it repaired"
        return Cause("purge", text, max(0.0, (outcome.time or history.end) - min(purged, outcome.time or history.end)))

    def _slow(self, outcome: Outcome, spent: dict[str, float]) -> Cause | None:
        """Return the sender, link or receiver that was slow as a cause; None if it explains little of the time."""
        history = self.history
        if "sending" not in spent or outcome.time is None:
            return None
        if spent["receiver"] > max(spent["repair"], spent["sending"]):
            text = f"everything had arrived, and {history.receiver} took {quoted(spent['receiver'])} more"
            return Cause("slow receiver", text, spent["receiver"])
        if spent["queues"] > max(spent["sending"], spent["waiting"]) / 2 and spent["queues"] > 2 * spent["repair"]:
            return Cause("slow link", f"packets waited up to {quoted(spent['queues'])} in queues on the way", spent["queues"])
        seconds = spent["waiting"] + spent["sending"]
        if seconds <= spent["transit"]:
            return None
        parts = [f"{quoted(spent['sending'])} from its first to its last packet"]
        parts += [f"{quoted(spent['waiting'])} before its first packet"] if spent["waiting"] > spent["transit"] else []
        parts += [f"{quoted(spent['pauses'])} of pauses"] if spent["pauses"] else []
        rate = "" if history.rate == inf else f" at {format_rate(history.rate)}"
        clock = history.outages.of_host(history.sender, ("drift", "crash"), 0.0, outcome.time) if history.outages else None
        text = f"{history.sender} took {', '.join(parts)}{rate}" + (f" ({clock.text})" if clock is not None else "")
        return Cause("slow sender", text, seconds)

    def _is_much_slower(self, spent: dict[str, float]) -> bool:
        """Return whether the sender used a small part of the path, and that cost far more than the repairs."""
        history = self.history
        used = history.octets / spent["sending"] if spent["sending"] and history.octets else history.rate
        return used < _SLOW * history.bottleneck < inf and spent["sending"] > _CLEARLY * spent["repair"]

    def _plain_sending(self, spent: dict[str, float]) -> str:
        return f"nothing was lost on the way, and nothing waited: {quoted(sum(spent.values()))} in all"

    def _network_cause(self, critical: Part, repair: float) -> Cause:
        """Return why the repairs took so long: the requests that failed, or else the loss itself."""
        fates = [self.fates[packet.number] for packet in critical.lost]
        names = Counter(fate.cause if fate.cause not in ("unknown", "end", "") else "drop" for fate in fates)
        name = names.most_common(1)[0][0]
        if self.costs:
            failed, cost = max(self.costs.items(), key=lambda item: item[1])
            if cost >= (_OF_OUTAGE if name in _OUTAGES else _FRACTION) * repair:
                return Cause(failed, self.reasons[failed], cost)
        fate = next((fate for fate in fates if fate.cause == name), fates[0])
        count = "a packet" if len(fates) == 1 else f"{len(fates)} packets"
        text = f"{count} of {self._named(critical)} did not arrive: {fate.text}"
        if critical.complete == inf:
            ends = "; it was never repaired"
        elif repair > 0:
            ends = f"; it was complete {quoted(repair)} later than without losses"
        else:
            ends = "; it was repaired while the rest was sent"
        return Cause(name, text + ends, repair)

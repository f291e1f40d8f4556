"""Explain an object of a capture file from what a single point of capture shows: requests, suppression, repairs, refusals."""

from math import inf

from experiments.captures.trace_file import TracedPacket
from experiments.doctor.network_rules import quoted
from experiments.explain.capture_history import CaptureHistory
from experiments.explain.content import Part, carried_by, parts_of
from experiments.explain.explanation import Cause, Explanation, Outcome, Step
from experiments.explain.rounds import repairs_between
from experiments.output.counted import counted
from protocols.serial import before

__all__ = ["explain_capture"]

_SHOWN = 3
"""Repairs, requests and gaps that the chain names of each kind."""


def explain_capture(history: CaptureHistory) -> Explanation:
    """Explain what became of the object at the receiver, as far as the capture shows it."""
    return _CaptureAnalysis(history).explanation()


class _CaptureAnalysis:
    def __init__(self, history: CaptureHistory) -> None:
        self.history = history
        content = [
            packet for packet in history.packets.values() if carried_by(packet) is not None and packet.node == history.sender
        ]
        self.parts = parts_of(content, history.object_id, {})
        self.steps: list[Step] = []

    def explanation(self) -> Explanation:
        history = self.history
        requests = {name: self._requests(name) for name in self.parts}
        own = {name: [each for each in found if each.node == history.receiver] for name, found in requests.items()}
        squelch = self._squelch()
        asked = [name for name, found in own.items() if found]
        critical = max(asked, key=lambda name: self._last_repair(self.parts[name], own[name]), default=None)
        self._gaps()
        if critical is not None:
            self._chain(self.parts[critical], requests[critical], own[critical])
        if squelch is not None:
            self._add("squelch", squelch, f"sends SQUELCH {squelch.brief}: object {history.object_id} is not repaired any more")
        outcome = self._outcome(own, critical, squelch)
        cause = self._cause(requests, own, critical, squelch)
        self.steps.sort(key=lambda step: step.time)
        for step in self.steps:
            step.frames = history.frames.get(step.packet, {})
        names = history.sender, history.receiver
        return Explanation(
            history.kind, *names, history.object_id, outcome, cause, self._spent(critical, own), self.steps, history.unknown
        )

    def _requests(self, name: str) -> list[TracedPacket]:
        history = self.history
        return [history.packets[number] for number, asked in history.requests.items() if name in asked or "*" in asked]

    def _squelch(self) -> TracedPacket | None:
        history = self.history
        for packet in history.packets.values():
            if packet.kind == "squelch":
                first = int(packet.brief.split(".")[0])
                if packet.number in history.squelches or before(history.object_id, first):
                    return packet
        return None

    def _repairs(self, part: Part, since: float) -> list[TracedPacket]:
        return repairs_between(part, since, inf)

    def _last_repair(self, part: Part, own: list[TracedPacket]) -> float:
        """Return when the part was repaired for the last time behind the receiver's requests; inf for never."""
        repairs = self._repairs(part, own[-1].time)
        return repairs[-1].time if repairs else inf

    def _gaps(self) -> None:
        """Tell of the sender's messages that are missing in the capture while the object was sent."""
        history = self.history
        times = [packet.time for part in self.parts.values() for packet in part.packets]
        inside = [gap for gap in history.gaps if min(times) <= gap[0] <= max(times)]
        for time, number, missing in inside[:_SHOWN]:
            text = (
                f"{counted(missing, 'message')} of {history.sender} before this one not in the capture: lost before this point"
            )
            self.steps.append(Step("missing", time, "capture", text, number))
        if len(inside) > _SHOWN:
            count = sum(missing for _, _, missing in inside[_SHOWN:])
            self.steps.append(Step("missing", inside[_SHOWN][0], "capture", f"and {count} more later"))

    def _chain(self, part: Part, requests: list[TracedPacket], own: list[TracedPacket]) -> None:
        history = self.history
        originals = part.first_transmissions()
        if originals:
            last = max(originals, key=lambda packet: packet.time)
            self._add("sent", last, f"sends {last.label}, the last content of {self._named(part)}")
        for packet in requests:
            if packet.node != history.receiver and packet.kind == "nack" and packet.time < own[0].time:
                self._add("request", packet, f"requests {self._named(part)} ({packet.brief}), before {history.receiver} does")
        for packet in own[:_SHOWN]:
            self._add("request", packet, f"requests {self._named(part)} ({packet.brief}): it has missed something of it")
        for packet in requests:
            if packet.kind == "repair_adv" and packet.time > own[0].time:
                self._add("advertised", packet, f"repeats the requests it got (REPAIR_ADV {packet.brief})")
                break
        repairs = self._repairs(part, own[0].time)
        for packet in [*repairs[:_SHOWN], *(repairs[_SHOWN:][-1:])]:
            self._add("repair", packet, f"sends {packet.label} as a repair")

    def _outcome(self, own: dict[str, list[TracedPacket]], critical: str | None, squelch: TracedPacket | None) -> Outcome:
        history = self.history
        if critical is not None and squelch is not None and own[critical][0].time < squelch.time:
            return Outcome("aborted", squelch.time, f"requested, and refused at {squelch.time:.6g} s")
        if critical is None:
            what = "requested nothing of it" if history.has_feedback else "sent nothing that was captured"
            return Outcome("unknown", None, f"{history.receiver} {what}")
        last = max(found[-1].time for found in own.values() if found)
        return Outcome("unknown", None, f"requested up to {last:.6g} s, and nothing more after that")

    def _cause(
        self,
        requests: dict[str, list[TracedPacket]],
        own: dict[str, list[TracedPacket]],
        critical: str | None,
        squelch: TracedPacket | None,
    ) -> Cause:
        history = self.history
        if critical is None:
            return self._without_requests(requests, squelch)
        part, asked = self.parts[critical], own[critical]
        noticed = max((packet.time for packet in part.first_transmissions()), default=asked[0].time)
        if squelch is not None and asked[0].time < squelch.time:
            text = f"{history.sender} refused to repair it (SQUELCH), {quoted(squelch.time - asked[0].time)} after the request"
            return Cause("purge", text, squelch.time - asked[0].time)
        others = [each for each in requests[critical] if each.node != history.receiver and noticed <= each.time < asked[0].time]
        heard = [each for each in others if asked[0].time - each.time > history.longest_backoff]
        if heard and not repairs_between(part, heard[0].time, asked[0].time):
            text = f"{heard[0].node} requested {self._named(part)} first, which suppresses others, and no repair followed"
            return Cause("suppressed request", text, asked[0].time - heard[0].time)
        repaired = self._last_repair(part, asked)
        if repaired == inf:
            return Cause("drop", f"{history.receiver} missed packets of {self._named(part)}, and no repair was captured", 0.0)
        again = f"; it had to request {len(asked)} times" if len(asked) > 1 else ""
        text = (
            f"{history.receiver} missed packets of {self._named(part)}; the last repair came {quoted(repaired - noticed)} later"
        )
        return Cause("drop", text + again, repaired - noticed)

    def _without_requests(self, requests: dict[str, list[TracedPacket]], squelch: TracedPacket | None) -> Cause:
        history = self.history
        if any(requests.values()):
            name = next(name for name, found in requests.items() if found)
            other = requests[name][0]
            suppressed = f"whether it lost what {other.node} requested and was suppressed, the capture does not show"
            return Cause("unknown", f"{history.receiver} requested nothing of it; {suppressed}", 0.0)
        if squelch is not None:
            return Cause("purge", f"{history.sender} does not repair it any more (SQUELCH)", 0.0)
        seconds = self._spent(None, {})["sending"]
        return Cause("none", f"nobody requested anything of it; {history.sender} took {quoted(seconds)} to send it", seconds)

    def _spent(self, critical: str | None, own: dict[str, list[TracedPacket]]) -> dict[str, float]:
        sent = [packet.time for part in self.parts.values() for packet in part.first_transmissions()]
        spent = {"sending": max(sent, default=0.0) - min(sent, default=0.0)}
        if critical is not None:
            last = self._last_repair(self.parts[critical], own[critical])
            spent["repair"] = max(0.0, last - max(sent, default=0.0))
        return spent

    def _add(self, what: str, packet: TracedPacket, text: str) -> None:
        self.steps.append(Step(what, packet.time, packet.node, text, packet.number))

    def _named(self, part: Part) -> str:
        own = self.history.object_id
        return f"the NORM_INFO of object {own}" if part.name == "info" else f"block {own}.{part.name}"

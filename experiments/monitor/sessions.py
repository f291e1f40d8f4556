"""The sessions of this user on this machine, of any protocol, and the hosts of running emulations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from experiments.monitor.discovery import Answer, Questioning, running
from experiments.monitor.domain import Connection, Reading
from protocols.overview import overviews
from protocols.snapshot import MEASURES, Measure, Snapshot

__all__ = ["HERE", "Question", "SessionSource"]

HERE: Final = "this machine"
"""The domain of sessions that belong to no other."""


class Question(Protocol):
    """A connection with a session, see `discovery.Questioning`."""

    answer: Answer | None

    def ask(self) -> None:
        """Ask."""

    async def wait(self) -> None:
        """Wait for the answer."""

    def close(self) -> None:
        """End."""


class SessionSource:
    """Asks every session for its statistics. `find` and `question` are those of `discovery` unless a test gives others."""

    def __init__(
        self,
        find: Callable[[], Sequence[str]] = running,
        question: Callable[[str], Question] = Questioning,
    ) -> None:
        self._find = find
        self._question = question
        self._questions: dict[str, Question] = {}
        self.answers: dict[str, Answer] = {}
        """The last answers, by the names of the sessions."""
        # Processes that management reports, too.
        self._managed: dict[str, int] = {}
        self._known: dict[str, tuple[Snapshot, list[Connection]]] = {}

    async def look(self, managed: Collection[int] = ()) -> None:
        """Ask all sessions that run; forget those that do not answer.

        `managed` are processes that management reports: they are queried once, to find which session is theirs.
        """
        names = dict.fromkeys(self._find())
        self._managed = {name: number for name, number in self._managed.items() if name in names}
        wanted = [name for name in names if self._managed.get(name) not in managed]
        for name in self._questions.keys() - wanted:
            self._questions.pop(name).close()
        for name in wanted:
            if name not in self._questions:
                self._questions[name] = self._question(name)
            self._questions[name].ask()
        for question in self._questions.values():
            await question.wait()
        answers = {name: question.answer for name, question in self._questions.items()}
        self.answers = {name: answer for name, answer in answers.items() if answer is not None}
        self._managed |= {name: answer.managed for name, answer in self.answers.items() if answer.managed is not None}

    async def ask(self, name: str) -> Answer | None:
        """Return the full statistics of one session, as of now; None if it is gone."""
        if name not in self._find():
            return None
        question = self._question(name)
        try:
            question.ask()
            await question.wait()
            return question.answer
        finally:
            question.close()

    def close(self) -> None:
        """Ask no more."""
        for question in self._questions.values():
            question.close()
        self._questions.clear()

    def session_of(self, managed: int) -> str:
        """Return the session of a process that management reports, "" if it is none of this user on this machine."""
        return next((name for name, number in self._managed.items() if number == managed), "")

    def readings(self, managed: Collection[int] = ()) -> dict[str, Reading]:
        """Return what is known of all processes but those that are `managed`, by a key for each."""
        found: dict[str, Reading] = {}
        self._known = {name: known for name, known in self._known.items() if name in self.answers}
        for name, answer in self.answers.items():
            if answer.managed is not None and answer.managed in managed:
                continue
            if answer.statistics.part == "machine":
                found |= _hosts(name, answer)
            else:
                found[name] = self._reading(name, answer)
        return found

    def _reading(self, name: str, answer: Answer) -> Reading:
        """Return the reading of a session; the same statistics are not read again."""
        known = self._known.get(name)
        if known is None or known[0] is not answer.statistics:
            known = self._known[name] = (answer.statistics, _connections(answer.statistics))
        told = answer.statistics.name
        place = f"process {answer.pid} at {told}" if told else f"process {answer.pid}"
        return Reading(HERE, answer.command or "session", place, known[1], answer.time, session=name)

    def snapshot(self) -> tuple[Snapshot, Mapping[str, Measure]]:
        """Return the statistics of all sessions as parts of their processes, and what their names mean."""
        parts: list[Snapshot] = []
        measures: dict[str, Measure] = dict(MEASURES)
        for name, answer in sorted(self.answers.items()):
            _, _, process = name.partition("/")
            parts.append(Snapshot("process", process, parts=(answer.statistics,)))
            measures |= answer.measures
        return Snapshot("machine", "", {"processes": len(parts)}, {}, parts), measures


def _hosts(name: str, answer: Answer) -> dict[str, Reading]:
    """Return the readings of the hosts of an emulation."""
    domain, place = f"emulation {answer.statistics.name}", f"process {answer.pid}"
    return {
        f"{name}/{host.name}": Reading(domain, host.name, place, _connections(host), host.values.get("at", answer.time))
        for host in answer.statistics.only("host")
    }


def _connections(host: Snapshot) -> list[Connection]:
    return [Connection.of(overview, str(number)) for number, overview in enumerate(overviews(host))]

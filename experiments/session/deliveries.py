"""Updates on their way from a Distributor connection to the program: a queue or a callback for each subscription."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from experiments.session.subscription_stream import SubscriptionStream
from protocols.distributor.messages import Source
from protocols.events import Event

__all__ = ["UpdateStream", "Update", "Updates"]


@dataclass(slots=True)
class Update:
    """An update that matches a subscription; `source` names its publisher, `value` is that of the subscription."""

    subject: str
    content: bytes
    source: Source
    value: Any = None


@dataclass(slots=True)
class Updates:
    """Updates of one subject and one publisher that came together, in their order."""

    subject: str
    contents: Sequence[bytes]
    source: Source
    value: Any = None


class UpdateStream(SubscriptionStream[Update]):
    """One subscription to the subjects that match a pattern; see `SubscriptionStream`. `value` comes with every update."""

    def __init__(
        self,
        number: int,
        pattern: str,
        value: Any,
        callback: Callable[[Update], object] | None,
        most: int,
        tell: Callable[[Event], None],
        end: Callable[[Self], None],
    ) -> None:
        super().__init__(number, pattern, callback, most, tell, end)
        self.value = value
        # Updates of one subject and publisher together, and how many of the first of them were taken.
        self._waiting: deque[tuple[str, Source, Sequence[bytes]]] = deque()
        self._taken = 0

    def deliver(self, subject: str, source: Source, contents: Sequence[bytes], now: float) -> None:
        """Take updates of one subject."""
        if self._callback is not None:
            for content in contents:
                self._call(self._callback, Update(subject, content, source, self.value))
        elif kept := self._admit(len(contents), now):
            self._waiting.append((subject, source, contents if kept == len(contents) else contents[:kept]))

    async def together(self) -> Updates | None:
        """Wait for updates, and return all that came together, which costs less than one by one; None at the end."""
        if not await self._some():
            return None
        subject, source, contents = self._waiting.popleft()
        found, self._taken = contents[self._taken :] if self._taken else contents, 0
        self._count(len(found))
        return Updates(subject, found, source, self.value)

    def _take(self) -> Update:
        subject, source, contents = self._waiting[0]
        content = contents[self._taken]
        self._taken += 1
        if self._taken == len(contents):
            self._waiting.popleft()
            self._taken = 0
        return Update(subject, content, source, self.value)

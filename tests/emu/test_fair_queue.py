"""`FairQueue` serves sources in turn, by the time their entries take."""

from emu.fair_queue import ENTRY, FairQueue


class Served:
    """A queue whose entries are (source, seconds), with a clock that these advance."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self.queue: FairQueue[tuple[str, float]] = FairQueue(limit)
        self.now = 0.0
        self.order: list[str] = []

    def push(self, source: str, seconds: float, times: int = 1) -> None:
        for _ in range(times):
            self.queue.push(source, 100, (source, seconds))

    def serve(self, times: int) -> None:
        for _ in range(times):
            self.queue.serve(self._process, lambda: self.now)

    def _process(self, entry: tuple[str, float]) -> None:
        source, seconds = entry
        self.order.append(source)
        self.now += seconds


def test_a_source_is_served_by_time_and_not_by_entries() -> None:
    served = Served()
    served.push("slow", 1.0, 100)
    served.push("quick", 0.1, 100)
    served.serve(44)
    assert served.order.count("quick") == 40
    assert served.order.count("slow") == 4


def test_a_source_that_comes_late_waits_for_one_entry_of_each_other() -> None:
    served = Served()
    served.push("flood", 1.0, 1000)
    served.serve(500)
    served.push("honest", 0.1)
    served.serve(2)
    assert "honest" in served.order[-2:]


def test_a_source_that_was_away_saves_no_time() -> None:
    served = Served()
    served.push("early", 1.0)
    served.push("other", 1.0, 100)
    served.serve(51)
    served.push("early", 1.0, 50)
    served.order.clear()
    served.serve(20)
    assert served.order.count("other") >= 9


def test_entries_of_a_source_keep_their_order() -> None:
    queue: FairQueue[int] = FairQueue(1 << 20)
    found: list[int] = []
    for number in range(10):
        queue.push("a", 1, number)
    while queue:
        queue.serve(found.append, lambda: 0.0)
    assert found == list(range(10))


def test_a_single_source_fills_the_queue_and_leaves_others_an_equal_part_of_as_much_again() -> None:
    served = Served(limit=10 * (100 + ENTRY))
    while served.queue.has_room("flood"):
        served.push("flood", 1.0)
    assert len(served.queue._queues["flood"]) == 10
    while served.queue.has_room("honest"):
        served.push("honest", 1.0)
    assert 3 <= len(served.queue._queues["honest"]) <= 5
    assert served.queue.has_room("a third")


def test_what_fails_is_served_no_more_and_the_next_is() -> None:
    queue: FairQueue[int] = FairQueue(1 << 20)
    for number in (0, 1):
        queue.push("a", 1, number)
    found = []

    def process(number: int) -> None:
        found.append(1 // number)

    try:
        queue.serve(process, lambda: 0.0)
    except ZeroDivisionError:
        found.append(0)
    queue.serve(process, lambda: 0.0)
    assert found == [0, 1]
    assert not queue


def test_what_is_left_of_an_entry_waits_for_the_next_turn_of_its_source() -> None:
    queue: FairQueue[list[str]] = FairQueue(1 << 20)
    found: list[str] = []

    def process(entry: list[str]) -> list[str] | None:
        found.append(entry[0])
        return entry[1:] or None

    ticks = iter(range(100))
    queue.push("a", 300, ["a1", "a2", "a3"], 3)
    queue.push("a", 100, ["a4"])
    queue.push("b", 200, ["b1", "b2"], 2)
    while queue:
        queue.serve(process, lambda: float(next(ticks)))
    assert found == ["a1", "b1", "a2", "b2", "a3", "a4"]


def test_an_entry_keeps_its_room_until_nothing_is_left_of_it() -> None:
    queue: FairQueue[int] = FairQueue(3000)
    queue.push("a", 1000, 2, 2)
    queue.push("a", 500, 1)
    assert not queue.has_room("a")
    queue.serve(lambda left: left - 1 or None, lambda: 0.0)
    assert not queue.has_room("a")
    queue.serve(lambda left: left - 1 or None, lambda: 0.0)
    assert queue.has_room("a")

"""The rules of connections and of storage, one function each: it runs machines in a world and raises AssertionError.

The machines are those of `conversation`, each in a `Watch`, which checks the calls between it and its host. `Caller` may be
replaced by one that breaks a rule.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from experiments.contract.conversation import Answerer, Caller, Line, LineCodec
from experiments.contract.watch import Watch
from experiments.contract.worlds import Coded, ContractWorld
from protocols.composite import CompositeMachine
from protocols.machine import Machine, Ports

__all__ = [
    "CONNECTION_RULES",
    "Conversation",
    "Talk",
    "all_is_heard_before_the_end",
    "everything_is_closed_once",
    "full_connections_drain",
    "hanging_up_ends_receiving",
    "machines_of_a_host_connect",
    "nobody_listens",
    "slow_connections_hold_up_no_other",
    "stopped_machines_reset",
]

T = TypeVar("T")
MakeWorld: TypeAlias = Callable[[Coded, int, float], ContractWorld]
LIMIT = 30.0
"""Seconds after which a conversation has failed."""


class Conversation:
    """The protocol of the machines, as a world needs it."""

    def codec(self) -> LineCodec:
        """Make a codec."""
        return LineCodec()


class Talk:
    """A world with machines, each in a watch. Use as a context; at its end every machine has been told what it waited for."""

    def __init__(self, make: MakeWorld, count: int) -> None:
        self.world = make(Conversation(), count, 0.0)
        self.watches: list[Watch] = []

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                for watch in self.watches:
                    watch.expect_all_ended()
        finally:
            self.world.close()

    def address(self, number: int, port: int = 0) -> Any:
        """Return the address of a host's machine."""
        return self.world.hosts[number].address_of(self.world.names[number], port)

    def start(self, host: Any, make: Callable[[Ports], Machine]) -> Any:
        """Run a machine on a host, and return it."""
        watch = Watch(host, make)
        self.watches.append(watch)
        host.run(watch, *watch.through(lambda event: None, host))
        return watch.inner

    def on(self, number: int, make: Callable[[Ports], Machine]) -> Any:
        """Run a machine on the host of a number, and return it."""
        return self.start(self.world.hosts[number], make)

    def call(self, machine: Machine, action: Callable[[], T]) -> T:
        """Call `action()`, which uses a machine, as an input of that machine."""
        watch: Any = next(watch for watch in self.watches if watch.inner is machine)
        result: T = watch.ports.call(watch.act, action)
        return result

    def until(self, over: Callable[[], bool], what: str) -> None:
        """Run until `over()`. AssertionError with `what` if that does not come."""
        self.world.run(self.world.now + LIMIT, over)
        assert over(), f"after {LIMIT} s: {what}"

    def pause(self, seconds: float) -> None:
        """Run for so many seconds."""
        self.world.run(self.world.now + seconds, lambda: False)


def everything_is_closed_once(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """Messages arrive whole, in order, each once; a connection is opened once and closed once at each end."""
    with Talk(make, 3) as talk:
        answerer: Answerer = talk.on(0, Answerer)
        callers: list[Caller] = [talk.on(n, lambda ports: caller(ports, talk.address(0), 200, 500)) for n in (1, 2)]
        talk.until(lambda: len(answerer.reasons) == 2 and all(each.reason for each in callers), "not closed")
        for each in (*callers, answerer):
            assert all(lines == list(range(200)) for lines in each.heard.values()), f"heard {each.heard}"
            assert set(each.reasons.values()) == {"ended"}


def all_is_heard_before_the_end(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """Messages sent before `hang_up` arrive before the other end's `closed("ended")`."""

    with Talk(make, 2) as talk:
        answerer: Answerer = talk.on(0, partial(Answerer, mute=True))
        leaver: Caller = talk.on(1, lambda ports: caller(ports, talk.address(0), 500, 1000, stays=False))
        talk.until(lambda: bool(answerer.reasons) and leaver.reason is not None, "not closed")
        assert list(answerer.heard.values()) == [list(range(500))], "lines are missing at the end"
        assert (leaver.reason, list(answerer.reasons.values())) == ("ended", ["ended"])


def hanging_up_ends_receiving(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """A machine that hangs up receives no more of what was sent to it, and both ends are told "ended"."""
    with Talk(make, 2) as talk:
        answerer: Answerer = talk.on(0, Answerer)
        here: Caller = talk.on(1, lambda ports: caller(ports, talk.address(0), 1000))
        # The answers to the last lines are on their way then.
        talk.until(lambda: any(len(lines) > 10 for lines in answerer.heard.values()), "nothing heard")
        talk.call(here, lambda: here.ports.hang_up(here.connection))  # type: ignore[arg-type]
        talk.until(lambda: here.reason is not None and bool(answerer.reasons), "not closed")
        assert here.reason == "ended"
        assert set(answerer.reasons.values()) <= {"ended", "reset"}


def full_connections_drain(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """A connection whose other end does not read becomes full, and drains when it does; nothing is lost."""
    lines, size = 400, 50_000
    with Talk(make, 2) as talk:
        answerer: Answerer = talk.on(0, partial(Answerer, mute=True))
        here: Caller = talk.on(1, lambda ports: caller(ports, talk.address(0), lines, size))
        talk.until(lambda: bool(answerer.heard), "no connection")
        (there,) = answerer.heard
        talk.world.hosts[0].hold(there)
        talk.until(lambda: bool(here.full), "never full")
        talk.pause(0.2)
        assert here.full, "a connection drained that nobody reads from"
        before = len(answerer.heard[there])
        talk.pause(0.2)
        assert len(answerer.heard[there]) == before, "messages came on a connection that is held"
        talk.world.hosts[0].release(there)
        talk.until(lambda: len(answerer.heard[there]) == lines, "lines are missing")
        assert answerer.heard[there] == list(range(lines))
        talk.call(here, lambda: here.ports.hang_up(here.connection))  # type: ignore[arg-type]
        talk.until(lambda: here.reason is not None and bool(answerer.reasons), "not closed")


def slow_connections_hold_up_no_other(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """A connection that is full does not keep another of the same machine from its messages."""
    with Talk(make, 3) as talk:
        answerer: Answerer = talk.on(0, Answerer)
        slow: Caller = talk.on(1, lambda ports: caller(ports, talk.address(0), 400, 50_000))
        talk.until(lambda: bool(answerer.heard), "no connection")
        (there,) = answerer.heard
        talk.world.hosts[0].hold(there)
        talk.until(lambda: bool(slow.full), "never full")
        other: Caller = talk.on(2, lambda ports: caller(ports, talk.address(0), 100))
        talk.until(lambda: other.reason is not None, "the other connection was held up")
        assert (other.reason, slow.reason) == ("ended", None)
        talk.world.hosts[0].release(there)
        talk.until(lambda: slow.reason is not None and len(answerer.reasons) == 2, "not closed")
        assert slow.reason == "ended"


def nobody_listens(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """A connection with an address at which nobody listens is closed as "refused" without having been opened."""
    with Talk(make, 2) as talk:
        here: Caller = talk.on(0, lambda ports: caller(ports, talk.address(1), 1))
        talk.until(lambda: here.reason is not None, "never refused")
        assert (here.reason, here.heard) == ("refused", {})


def machines_of_a_host_connect(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """Machines of one host connect with each other, a machine with itself, and other hosts with either."""
    with Talk(make, 2) as talk:
        composite = CompositeMachine(talk.world.hosts[0])
        hosts = [composite.component(name) for name in ("", "second", "third")]
        answerers: list[Answerer] = [talk.start(host, Answerer) for host in hosts[:2]]
        here: Caller = talk.start(hosts[2], lambda ports: caller(ports, talk.address(0, 1), 20))
        far: Caller = talk.on(1, lambda ports: caller(ports, talk.address(0, 0), 20))
        own = talk.call(answerers[1], lambda: answerers[1].ports.connect(talk.address(0, 1)))
        both = (here, far)
        talk.until(lambda: all(each.reason for each in both) and own in answerers[1].heard, "not connected")
        talk.call(answerers[1], lambda: answerers[1].say(own, Line(7, 100)))
        talk.until(lambda: [7] in [lines[:1] for lines in answerers[1].heard.values()], "not heard by itself")
        talk.call(answerers[1], lambda: answerers[1].ports.hang_up(own))
        talk.until(lambda: len(answerers[1].reasons) == 3 and len(answerers[0].reasons) == 1, "not closed")
        assert [each.reason for each in both] == ["ended", "ended"]
        assert list(answerers[0].heard.values()) == [list(range(20))]


def stopped_machines_reset(make: MakeWorld, caller: type[Caller] = Caller) -> None:
    """The connections of a machine that is removed are reset, and those of its neighbour are not."""
    with Talk(make, 2) as talk:
        composite = CompositeMachine(talk.world.hosts[0])
        hosts = [composite.component(name) for name in ("", "second")]
        answerers: list[Answerer] = [talk.start(host, partial(Answerer, mute=True)) for host in hosts]
        away = CompositeMachine(talk.world.hosts[1])
        callers: list[Caller] = []
        for port in (0, 1):
            host = away.component(f"caller-{port}")
            callers.append(talk.start(host, lambda ports, port=port: caller(ports, talk.address(0, port), 5)))  # type: ignore[misc]
        talk.until(lambda: all(5 in map(len, each.heard.values()) for each in answerers), "not connected")
        hosts[1].stop()
        talk.until(lambda: callers[1].reason is not None, "not reset")
        assert [each.reason for each in callers] == [None, "reset"]
        hosts[0].stop()
        talk.until(lambda: callers[0].reason is not None, "not reset")
        assert callers[0].reason == "reset"


CONNECTION_RULES: tuple[Callable[..., None], ...] = (
    everything_is_closed_once,
    all_is_heard_before_the_end,
    hanging_up_ends_receiving,
    full_connections_drain,
    slow_connections_hold_up_no_other,
    nobody_listens,
    machines_of_a_host_connect,
    stopped_machines_reset,
)
"""The rules; each takes what makes a world, and the class of callers."""

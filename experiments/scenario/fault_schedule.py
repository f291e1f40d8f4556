"""The faults of a scenario: their parameters, and their schedule in the simulator.

Each fault has a time, one verb with the hosts it concerns, and a duration (without `for`: to the end of the run).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_serializer, model_validator

from protocols.errors import ConfigError, UsageError
from protocols.hosting import PortsHost
from sim.changing import check_change, make_changeable
from sim.faults import Faults, Undo, sides_of
from sim.network import Network
from sim.watch import Watcher
from topologies.spec import Topology
from topologies.units import Duration, Fraction, Rate, Size

__all__ = ["VERBS", "ChurningProgram", "CrashableProgram", "Decision", "DecisionWatcher", "Fault", "Verb", "check", "plan"]


@dataclass(frozen=True, slots=True)
class Verb:
    """The keys of a verb besides `at`: those it requires (`needs`), and those it allows (`takes`)."""

    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


VERBS = {
    "partition": Verb(takes=("for", "oneway")),
    "hold": Verb(takes=("for", "oneway")),
    "flap": Verb(needs=("for",), takes=("times", "every")),
    "change": Verb(takes=("for", "rate", "loss")),
    "crash": Verb(takes=("for", "when", "power", "disk")),
    "churn": Verb(needs=("for",), takes=("times", "every")),
    "slow": Verb(needs=("takes",), takes=("for", "room")),
    "drift": Verb(needs=("factor",), takes=("for",)),
    "step": Verb(needs=("forward",)),
    "storm": Verb(needs=("rate",), takes=("for", "size")),
}


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Hosts: TypeAlias = Annotated[
    tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...]), Field(min_length=1)
]
"""A host or a counted group of hosts, or a list of these."""
Sides: TypeAlias = Annotated[tuple[Hosts, ...], Field(min_length=2)]
"""Lists of hosts; the word `rest` stands for all other hosts."""


class Decision(BaseModel):
    """A point in the work of a host's machine: the `count`-th time it reports a decision (`Ports.trace`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decision: str = Field(min_length=1, description="name of the decision, as traces show it")
    count: int = Field(default=1, ge=1, strict=True, description="how often it is made until then")


class Fault(BaseModel):
    """One fault: exactly one verb, and the keys that belong to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: Duration | None = Field(default=None, description="time at which the fault begins")
    when: Decision | None = Field(
        default=None, description="crash: the decision of the host's machine at which it begins, in the place of `at`"
    )
    lasts: Duration | None = Field(default=None, alias="for", description="duration of the fault; none: to the end of the run")
    partition: Sides | None = Field(default=None, description="packets between hosts of different lists are dropped")
    hold: Sides | None = Field(default=None, description="packets between hosts of different lists arrive when the fault ends")
    flap: tuple[str, str] | None = Field(default=None, description="two neighbours; the link between them is down")
    change: tuple[str, str] | None = Field(
        default=None, description="two neighbours; rate or loss of the link from the first to the second changes"
    )
    crash: Hosts | None = Field(default=None, description="hosts that crash, and restart without state when the fault ends")
    power: bool = Field(default=False, description="crash: the host is off, so that peers hear nothing instead of a reset")
    disk: Literal["lose"] | None = Field(default=None, description="crash: lose: nothing that was stored is left")
    churn: Hosts | None = Field(
        default=None, description="hosts whose publishers and subscribers leave, and come again when the fault ends"
    )
    slow: Hosts | None = Field(default=None, description="hosts whose application takes time for every packet")
    drift: Hosts | None = Field(default=None, description="hosts whose clocks run fast or slow")
    step: Hosts | None = Field(default=None, description="hosts whose clocks jump forward")
    storm: Hosts | None = Field(default=None, description="hosts that multicast meaningless packets to all")
    oneway: bool = Field(default=False, description="partition, hold: only packets sent by the first list are affected")
    times: int = Field(
        default=1, ge=1, le=10_000, strict=True, description="flap, churn: number of times that it goes down, or they leave"
    )
    every: Duration | None = Field(
        default=None, gt=0.0, description="flap, churn: time from one of these times to the next; none: twice `for`"
    )
    takes: Duration = Field(default=0.0, description="slow: time for each packet")
    room: int = Field(
        default=64, ge=1, strict=True, description="slow: packets in the receive buffer at most; further ones are dropped"
    )
    factor: float = Field(default=1.0, ge=0.1, le=10.0, description="drift: local seconds per second of simulated time")
    forward: Duration = Field(default=0.0, description="step: time by which the clock jumps")
    rate: Rate | None = Field(default=None, description="storm: rate of the packets; change: new rate of the link")
    loss: Fraction | None = Field(default=None, description="change: new loss probability of the link, such as 5%")
    size: Size = Field(default=1000, ge=1, le=65_507, description="storm: bytes of each packet")

    @model_validator(mode="after")
    def _one_verb(self) -> "Fault":
        written = {type(self).model_fields[key].alias or key for key in self.model_fields_set}
        verbs = [verb for verb in VERBS if verb in written]
        if len(verbs) != 1:
            raise ValueError(f"one of {', '.join(VERBS)} says what happens, and here are {', '.join(verbs) or 'none'}")
        known = VERBS[verbs[0]]
        for key in known.needs:
            if key not in written:
                raise ValueError(f"{verbs[0]} needs {key!r}")
        unexpected = sorted(written.difference(("at", verbs[0], *known.needs, *known.takes)))
        if unexpected:
            raise ValueError(f"{unexpected[0]!r} does not belong to {verbs[0]}")
        if (self.at is None) == (self.when is None):
            raise ValueError("either 'at' or, for a crash, 'when' says when it begins" if self.at is None else "'at' or 'when'")
        if self.when is not None and len(self.crash or ()) != 1:
            raise ValueError("a crash with 'when' is that of one host")
        if self.change is not None and self.rate is None and self.loss is None:
            raise ValueError("change needs 'rate' or 'loss'")
        if self.every is not None and self.every <= (self.lasts or 0.0):
            raise ValueError("'every' is longer than 'for'")
        return self

    @model_serializer
    def _written(self) -> dict[str, Any]:
        """Serialize the verb and its keys, with defaults filled in."""
        known = VERBS[self.verb]
        values = {} if self.at is None else {"at": self.at}
        values[self.verb] = getattr(self, self.verb)
        for key in (*known.needs, *known.takes):
            value = getattr(self, "lasts" if key == "for" else key)
            if value is not None and (key != "power" or value):
                values[key] = value * 8 if key == "rate" else value
        return values

    @property
    def verb(self) -> str:
        """The name of the verb."""
        return next(verb for verb in VERBS if verb in self.model_fields_set)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the fault; empty for partition, hold, flap and change."""
        found: tuple[str, ...] | None = getattr(self, self.verb)
        return found or () if self.verb not in ("partition", "hold", "flap", "change") else ()

    @property
    def sides(self) -> list[Any]:
        """The lists of hosts of partition and hold; `rest` stays a word."""
        return [side[0] if side == ("rest",) else side for side in self.partition or self.hold or ()]


def check(fault: Fault, topology: Topology) -> None:
    """ConfigError, beginning with the verb, for hosts and links that the topology does not have."""
    try:
        if fault.flap is not None:
            _check_link(fault.flap, topology)
        elif fault.change is not None:
            check_change(topology, *fault.change)
        elif fault.sides:
            sides_of(topology, fault.sides)
        names = [host for name in fault.hosts for host in topology.hosts_of(name)]
        if fault.when is not None and len(names) > 1:
            raise UsageError("a crash with 'when' is that of one host")
    except UsageError as error:
        named = getattr(fault, fault.verb)
        shown = named[0] if isinstance(named, tuple) and len(named) == 1 else named
        raise ConfigError(f"{fault.verb}: value {_as_yaml(shown)} is not allowed; {error}") from error


def _as_yaml(names: Any) -> str:
    """Return a name, or names in lists, as a scenario file has them."""
    return repr(names) if isinstance(names, str) else f"[{', '.join(_as_yaml(name).strip(chr(39)) for name in names)}]"


def _check_link(pair: Sequence[str], topology: Topology) -> None:
    nodes = [name if name in topology.graph else topology.member(name).node for name in pair]
    if not topology.graph.has_edge(*nodes):
        raise UsageError("these two have no link")


@runtime_checkable
class ChurningProgram(Protocol):
    """A program whose publishers and subscribers leave and come again."""

    def leave(self) -> None:
        """End what takes part in the session; no effect on what has ended, left or crashed."""

    def come(self) -> None:
        """Take part again, as what left; no effect on anything else."""


class CrashableProgram(Protocol):
    """A program that a fault can crash and restart."""

    def start(self, host: PortsHost) -> None:
        """Start the program on the host, for the first time or after a crash."""

    def crash(self) -> None:
        """Handle a crash of the host."""


class DecisionWatcher(Watcher):
    """Counts the decisions of machines, and crashes hosts at those that faults name, after `begin_with`."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._waiting = {fault.crash[0]: fault for fault in faults if fault.when is not None and fault.crash is not None}
        self._counts: Counter[str] = Counter()
        self._begin: Callable[[str, Fault], None] = lambda host, fault: None

    def begin_with(self, begin: Callable[[str, Fault], None]) -> None:
        """Call `begin(host, fault)` within the input of the machine that makes the decision."""
        self._begin = begin

    def decided(self, now: float, host: str, name: str, detail: object) -> None:
        """Count a decision."""
        del now, detail
        fault = self._waiting.get(host)
        if fault is None or fault.when is None or fault.when.decision != name:
            return
        self._counts[host] += 1
        if self._counts[host] == fault.when.count:
            del self._waiting[host]
            self._begin(host, fault)


def plan(
    faults: Sequence[Fault],
    network: Network,
    programs: Mapping[str, CrashableProgram],
    decisions: DecisionWatcher | None = None,
) -> Faults:
    """Schedule every fault in the network, before it runs; return the object that counts what the faults did.

    `decisions` watches the network if there are faults with `when`.
    """
    verbs = Faults(network)
    if decisions is not None:

        def begin(host: str, fault: Fault) -> None:
            verbs.halt(host)
            network.later(network.env.now, partial(_begin, fault, verbs, programs))

        decisions.begin_with(begin)
    for fault in faults:
        if fault.at is None:
            continue
        if fault.change is not None:
            make_changeable(network, *fault.change)
        period = fault.every if fault.every is not None else 2 * (fault.lasts or 0.0)
        for number in range(fault.times):
            network.later(fault.at + number * period, partial(_begin, fault, verbs, programs))
    return verbs


def _begin(fault: Fault, verbs: Faults, programs: Mapping[str, CrashableProgram]) -> None:
    network = verbs.network
    undo = _DO[fault.verb](fault, verbs, programs)

    def end() -> None:
        for revert in undo:
            revert()

    if fault.lasts is not None:
        network.later(network.env.now + fault.lasts, end)


def _crash(fault: Fault, verbs: Faults, programs: Mapping[str, CrashableProgram]) -> list[Undo]:
    # A host without a program has nothing that could crash.
    names = [name for name in _each(fault, verbs) if name in programs]
    for name in names:
        programs[name].crash()
        verbs.crash(name, fault.power, fault.disk == "lose")
    return [partial(verbs.restart, name, programs[name].start) for name in names]


def _churn(fault: Fault, verbs: Faults, programs: Mapping[str, CrashableProgram]) -> list[Undo]:
    undo: list[Undo] = []
    for name in _each(fault, verbs):
        program: object = programs.get(name)
        if isinstance(program, ChurningProgram):
            verbs.counts["churn"] += 1
            program.leave()
            undo.append(program.come)
    return undo


def _each(fault: Fault, verbs: Faults) -> list[str]:
    return [host for name in fault.hosts for host in verbs.network.topology.hosts_of(name)]


def _steps(fault: Fault, verbs: Faults) -> list[Undo]:
    for name in _each(fault, verbs):
        verbs.step(name, fault.forward)
    return []


_DO: dict[str, Callable[[Fault, Faults, Mapping[str, CrashableProgram]], list[Undo]]] = {
    "partition": lambda fault, verbs, _: [verbs.partition(fault.sides, oneway=fault.oneway)],
    "hold": lambda fault, verbs, _: [verbs.hold(fault.sides, oneway=fault.oneway)],
    "flap": lambda fault, verbs, _: [verbs.cut(*(fault.flap or ("", "")))],
    "change": lambda fault, verbs, _: [verbs.change(*(fault.change or ("", "")), fault.rate, fault.loss)],
    "crash": _crash,
    "churn": _churn,
    "slow": lambda fault, verbs, _: [verbs.slow(name, fault.takes, fault.room) for name in _each(fault, verbs)],
    "drift": lambda fault, verbs, _: [verbs.drift(name, fault.factor) for name in _each(fault, verbs)],
    "step": lambda fault, verbs, _: _steps(fault, verbs),
    "storm": lambda fault, verbs, _: [verbs.storm(name, fault.rate or 0.0, fault.size) for name in _each(fault, verbs)],
}

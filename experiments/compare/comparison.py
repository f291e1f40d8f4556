"""Run variants of a scenario with equal seeds, so that losses are equal and differences are paired."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from experiments.compare.paired import Difference, difference
from experiments.output.budget import number, says_nothing
from experiments.output.extras import need
from experiments.output.html_table import html_table
from experiments.running.result import Result, packets_of
from experiments.running.run import run
from experiments.running.run_progress import RunProgress
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.scenario.protocol_modules import find_protocol, protocol_names, resolve
from experiments.scenario.scenario import SEEDS, Scenario
from experiments.scenario.suggestion import did_you_mean, one_of
from protocols.errors import ConfigError, UsageError

__all__ = ["METRICS", "Comparison", "collate", "compare", "usual_protocols", "variants"]

USUAL = ("norm", "a", "n1", "n2", "srm")

METRICS: dict[str, str] = {
    "completion_time": "completion time [s]",
    "goodput_mbit_s": "goodput [Mbit/s]",
    "bytes_sent": "bytes sent by all hosts",
    "overhead": "bytes sent / content",
    "feedback": "NACKs and ACKs",
    "repairs_sent": "repairs",
    "packets": "packets sent by all hosts",
}
"""Compared metrics with their labels."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Values by variant and metric, one per run (None where a run has no value), and differences to the first variant.

    `protocols` are the names of the variants: those of protocols, or of the cases of a scenario.
    """

    scenario: str
    seeds: tuple[int, ...]
    protocols: tuple[str, ...]
    completed: dict[str, int]
    values: dict[str, dict[str, list[float | None]]]
    differences: dict[str, dict[str, Difference]]

    @property
    def title(self) -> str:
        """A title for the table: the scenario, the number of runs of each variant, and their seeds."""
        first, last = self.seeds[0], self.seeds[-1]
        return f"{self._each}, " + (f"seeds {first} to {last}" if len(self.seeds) > 1 else f"seed {first}")

    @property
    def brief(self) -> str:
        """The mean completion time of each variant in seconds, in one line."""
        whole = ", ".join(f"{name} {_mean(self.values[name]['completion_time']) or '-'}" for name in self.protocols)
        return f"{self._each}, completion time [s]: {whole}"

    @property
    def _each(self) -> str:
        return f"{self.scenario}: {len(self.seeds)} run{'s' * (len(self.seeds) > 1)} each"

    @property
    def note(self) -> str:
        """A note for the table: how the differences and their confidence intervals are computed."""
        return f"differences to {self.protocols[0]}: mean of pairs and 95 % interval (Student t)"

    def rows(self) -> list[list[str | None]]:
        """Return the rows of a table with a column for each variant: means, and differences with half of their intervals."""
        runs = len(self.seeds)
        rows: list[list[str | None]] = [["runs completed", *(f"{self.completed[name]} of {runs}" for name in self.protocols)]]
        for metric, label in METRICS.items():
            gaps = [self.differences[name].get(metric) for name in self.protocols[1:]]
            rows.append([label, *(_mean(self.values[name][metric]) for name in self.protocols)])
            rows.append(["  difference", None, *(None if gap is None else _signed(gap.mean) for gap in gaps)])
            rows.append(["  interval +-", None, *(_half(gap) for gap in gaps)])
        return [row for row in rows if not says_nothing(row[1:])]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each run: protocol, seed and metrics. UnsupportedError without pandas."""
        need("to_frame", "pandas")
        import pandas as pd

        rows = [
            {"protocol": name, "seed": seed, **{metric: self.values[name][metric][place] for metric in METRICS}}
            for name in self.protocols
            for place, seed in enumerate(self.seeds)
        ]
        return pd.DataFrame(rows).astype(dict.fromkeys(METRICS, float))

    def __repr__(self) -> str:
        """Return one line; `values` and `differences` have the numbers."""
        return f"<Comparison of {self.brief}>"

    def _repr_html_(self) -> str:
        return html_table(self.rows(), caption=self.title, head=("", *self.protocols), note=self.note)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON; an infinite end of an interval is None."""
        plain = asdict(self)
        for row in plain["differences"].values():
            for gap in row.values():
                gap.update({end: None for end in ("low", "high") if abs(gap[end]) == float("inf")})
        return plain


def usual_protocols(scenario: Scenario) -> list[str]:
    """Return the protocols that a scenario is compared under by default: its own first, unless it is one of the usual five."""
    own = scenario.protocol.name
    return [*(() if own in USUAL else (own,)), *USUAL]


def variants(scenario: Scenario, protocols: Sequence[str], special: Mapping[str, Mapping[str, object]]) -> dict[str, Scenario]:
    """Return a scenario under each protocol: with the parameters of the scenario that it shares, and those `special` to it.

    `protocols` are names, or files of protocols from outside. `special` maps a protocol's name to settings of its own. Raises
    UsageError for unknown or repeated protocols.
    """
    wanted, given = dict[str, str](), dict[str, str]()
    for protocol in protocols:
        name, module = _named(protocol)
        if given.get(name, protocol) != protocol:
            raise UsageError(
                f"--protocols: value {protocol!r} is not allowed; it calls its protocol {name!r}, as {given[name]!r} does"
            )
        wanted[name], given[name] = module, protocol
    if len(wanted) != len(protocols) or len(wanted) < 2:
        raise UsageError(f"--protocols: value {','.join(protocols)!r} is not allowed; at least two, all different")
    for name in special:
        if name not in wanted:
            raise UsageError(f"--with: value {name!r} is not allowed; {one_of(name, wanted)}")
    return {name: _under(scenario, name, module, special.get(name, {})) for name, module in wanted.items()}


def _under(scenario: Scenario, name: str, module: str, special: Mapping[str, object]) -> Scenario:
    try:
        return scenario.under(_variant(scenario.protocol, name, module, special))
    except ConfigError as error:
        raise ConfigError(f"{scenario.name} under {name}: {error}") from error


def _named(wanted: str) -> tuple[str, str]:
    """The name and the module of a protocol given by its name or its file."""
    if wanted.endswith(".py"):
        module = resolve(wanted)
        return find_protocol("", module).spec.name, module
    if wanted not in protocol_names():
        allowed, near = ", ".join(protocol_names()), did_you_mean(wanted, protocol_names())
        raise UsageError(f"--protocols: value {wanted!r} is not allowed; each one of {allowed}, or a file.py{near}")
    return wanted, ""


def _variant(base: ProtocolChoice, name: str, module: str, special: Mapping[str, object]) -> ProtocolChoice:
    kind = find_protocol(name, module).spec.config
    given = asdict(base.config)
    if base.name != name:
        given = {
            item.name: given[item.name] for item in fields(kind) if item.name in ("rate", "segment") and item.name in given
        }
    wanted = ProtocolChoice.of(name, dict(special), module).config
    return ProtocolChoice(name, kind(**given | {key: getattr(wanted, key) for key in special}), module)


def compare(
    scenarios: Mapping[str, Scenario],
    runs: int,
    backend: str = "sim",
    begin: Callable[[RunProgress], None] | None = None,
) -> Iterator[tuple[str, int, Result]]:
    """Run every variant with consecutive seeds from the scenario's; yield (name, seed, result).

    `begin` is given the progress of each run before it begins.
    """
    for place in range(runs):
        for name, scenario in scenarios.items():
            seed = (scenario.seed + place) % SEEDS
            wanted = scenario.model_copy(update={"seed": seed})
            progress = RunProgress(wanted, f"{scenario.name} under {name}, seed {seed}")
            if begin is not None:
                begin(progress)
            yield name, seed, run(wanted, backend, progress=progress if backend == "sim" else None)


def collate(scenario: str, results: Iterable[tuple[str, int, Result]]) -> Comparison:
    """Collect the results of `compare` into values and paired differences; `scenario` is the name of what was compared."""
    values: dict[str, dict[str, list[float | None]]] = {}
    completed: dict[str, int] = {}
    seeds: dict[int, None] = {}
    for name, seed, result in results:
        seeds[seed] = None
        completed[name] = completed.get(name, 0) + result.completed
        row = values.setdefault(name, {metric: [] for metric in METRICS})
        for metric in METRICS:
            row[metric].append(_value(result, metric))
    first = next(iter(values))
    differences = {
        name: {metric: gap for metric in METRICS if (gap := _gap(row[metric], values[first][metric])) is not None}
        for name, row in values.items()
        if name != first
    }
    return Comparison(scenario, tuple(seeds), tuple(values), completed, values, differences)


def _value(result: Result, metric: str) -> float | None:
    if metric == "packets":
        value = result.metrics["packets"]["total"]
    else:
        value = packets_of(result, "nack", "ack") if metric == "feedback" else result.metrics[metric]
    return None if value is None else float(value)


def _gap(ours: list[float | None], theirs: list[float | None]) -> Difference | None:
    """Return the paired difference over pairs in which both runs have a value; None without a pair."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    return difference([a for a, _ in pairs], [b for _, b in pairs]) if pairs else None


def _signed(value: float) -> str:
    return ("" if value < 0 else "+") + number(value)


def _half(gap: Difference | None) -> str | None:
    """Return half of the width of the interval; None without one, as for a single pair."""
    return None if gap is None or gap.pairs < 2 else number((gap.high - gap.low) / 2, 4)


def _mean(values: list[float | None]) -> str | None:
    known = [value for value in values if value is not None]
    return number(sum(known) / len(known)) if known else None

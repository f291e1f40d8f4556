"""Run all mutants, and the protocols that they are made of, in the scenarios of the zoo."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import Pool
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import Any

from experiments.scenario.scenario import Scenario, load
from experiments.zoo.observation import RuleBreak, observe
from protocols.errors import UsageError
from protocols.registry import names, protocol

__all__ = ["SCENARIOS", "Specimen", "Visit", "specimens", "visit"]

SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass(frozen=True, slots=True)
class Specimen:
    """A mutant of a protocol, or with an empty name the protocol itself."""

    protocol: str
    mutant: str
    about: str

    @property
    def name(self) -> str:
        """The name that results have."""
        return self.mutant or self.protocol


@dataclass(frozen=True, slots=True)
class Visit:
    """The rules that a specimen broke in each scenario of its protocol."""

    specimen: Specimen
    breaks: dict[str, tuple[RuleBreak, ...]]

    @property
    def is_caught(self) -> bool:
        """Whether a rule was broken."""
        return any(self.breaks.values())

    @property
    def is_as_expected(self) -> bool:
        """Whether a mutant was caught, or a protocol broke no rule."""
        return self.is_caught == bool(self.specimen.mutant)

    def by_rule(self) -> dict[str, tuple[str, RuleBreak]]:
        """Return the scenario in which each rule was broken first, with the break, by rule."""
        found: dict[str, tuple[str, RuleBreak]] = {}
        for scenario, breaks in self.breaks.items():
            for broken in breaks:
                found.setdefault(broken.rule, (scenario, broken))
        return found

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rows = [{"scenario": name, **asdict(broken)} for name, breaks in self.breaks.items() for broken in breaks]
        names = {"protocol": self.specimen.protocol, "mutant": self.specimen.mutant or None}
        return {**names, "about": self.specimen.about, "caught": self.is_caught, "ok": self.is_as_expected, "breaks": rows}


def specimens(only: Sequence[str] = ()) -> list[Specimen]:
    """Return every protocol that has mutants, and these after it, or of them those in `only`. UsageError for an unknown one."""
    found = []
    for name in names():
        mutants = protocol(name).mutant_table
        plain = [Specimen(name, "", "without a defect")] if mutants else []
        wanted = [Specimen(name, mutant, made.about) for mutant, made in mutants.items() if not only or mutant in only]
        found += plain + wanted if wanted else []
    known = [specimen.mutant for specimen in found]
    for name in only:
        if name not in known:
            every = [mutant for own in names() for mutant in protocol(own).mutant_table]
            raise UsageError(f"--only: value {name!r} is not allowed; one of {', '.join(every)}")
    return found


def visit(wanted: Iterable[Specimen], jobs: int = 1) -> Iterator[Visit]:
    """Yield what each specimen did in all scenarios of its protocol; `jobs` runs at the same time, in processes."""
    paths = sorted(SCENARIOS.glob("*.yaml"))
    protocols = {path: load(path).protocol.name for path in paths}
    tasks = [(specimen, [path for path in paths if protocols[path] == specimen.protocol]) for specimen in wanted]
    if min(jobs, len(tasks)) < 2:
        yield from map(_visit, tasks)
        return
    with Pool(min(jobs, len(tasks)), signal, (SIGINT, SIG_IGN)) as pool:
        yield from pool.imap(_visit, tasks)


def _visit(task: tuple[Specimen, Sequence[Path]]) -> Visit:
    specimen, paths = task
    return Visit(specimen, {path.stem: observe(_scenario(path, specimen)).breaks for path in paths})


def _scenario(path: Path, specimen: Specimen) -> Scenario:
    return load(path, [f"protocol.mutant={specimen.mutant}"] if specimen.mutant else [])

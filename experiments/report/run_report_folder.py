"""The folder of one run: its result, its topology, and which hosts a report shows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from experiments.captures.trace_file import NAME as TRACE
from experiments.output.run_folder import is_sweep
from experiments.running.result import Result, Row
from protocols.errors import ConfigError, UsageError
from topologies.generators import AnyTopology
from topologies.input_file import read_text
from topologies.names import first_names
from topologies.spec import Topology

__all__ = ["MOST_HOSTS", "WORST", "RunFolder", "is_run", "open_run"]

MOST_HOSTS = 24
"""Largest number of hosts that are all shown; of more, the senders and the worst receivers."""
WORST = 10
_MOST_SENDERS = 4
_MOST_CASES = 5
_LARGEST = 200_000_000


@dataclass(frozen=True)
class RunFolder:
    """What `mcastlab run --out` wrote: `result.json` and `scenario.json`, and where a trace and captures are."""

    path: Path
    result: Result
    scenario: Mapping[str, Any]
    topology: Topology

    @property
    def trace(self) -> Path | None:
        """The file of the trace; None without one."""
        path = self.path / TRACE
        return path if path.is_file() else None

    @property
    def captures(self) -> list[Path]:
        """The capture files, in order of their names."""
        return sorted((self.path / "captures").glob("*.pcapng"))

    @property
    def duration(self) -> float:
        """When the run ended, in seconds."""
        return float(self.result.metrics["duration"])

    @cached_property
    def senders(self) -> list[str]:
        """The hosts that send files or publish messages."""
        works = self.scenario["workload"]
        files = [str(work["from"]) for work in works if work["kind"] == "file"]
        named = [name for work in works if work["kind"] == "publish" for name in work["hosts"]]
        return list(dict.fromkeys([*files, *(host for name in named for host in self.topology.hosts_of(name))]))

    @cached_property
    def receivers(self) -> frozenset[str]:
        """The hosts that receive content."""
        return frozenset(row.name for row in self.result.receivers)

    @cached_property
    def groups(self) -> dict[str, frozenset[str]]:
        """The receivers of each multicast group."""
        found: dict[str, frozenset[str]] = {}
        for work in self.scenario["workload"]:
            if work["kind"] == "publish":
                continue
            named = work["hosts"] if work["kind"] == "subscribe" else work.get("members")
            members = (
                self.receivers if named is None else frozenset(host for name in named for host in self.topology.hosts_of(name))
            )
            found[work["group"]] = found.get(work["group"], frozenset()) | members
        return found

    @cached_property
    def attendance(self) -> dict[str, tuple[float, float]]:
        """When each receiver that is not always there joins and leaves, in seconds."""
        return {
            host: (float(entry["join"]), inf if entry["leave"] is None else float(entry["leave"]))
            for entry in self.scenario["receivers"]
            for name in entry["hosts"]
            for host in self.topology.hosts_of(name)
        }

    def is_member(self, host: str, time: float) -> bool:
        """Return whether a receiver has joined at `time` and not left; True for all other hosts."""
        joins, leaves = self.attendance.get(host, (0.0, inf))
        return joins <= time < leaves

    def shown(self, known: Sequence[str], wanted: Sequence[str]) -> list[str]:
        """Return the hosts a report shows: the `wanted` ones, all if they are few, or the senders and the worst receivers.

        `known` are the hosts that were recorded. Raises UsageError for a host that is not among them, and for too many.
        """
        for name in wanted:
            if name not in known:
                raise UsageError(f"--hosts: value {name!r} is not allowed; recorded are {first_names(known, MOST_HOSTS)}")
        if len(wanted) > MOST_HOSTS:
            raise UsageError(f"--hosts: {len(wanted)} hosts are not allowed; at most {MOST_HOSTS}")
        chosen = set(wanted)
        if not wanted:
            if len(known) <= MOST_HOSTS:
                return list(known)
            there = frozenset(known)
            chosen = {name for name in self.senders[:_MOST_SENDERS] if name in there}
            chosen.update([row.name for row in self.worst() if row.name in there][:WORST])
        return [name for name in known if name in chosen]

    def worst(self) -> list[Row]:
        """Return the receivers, those first that are incomplete, lost most, and requested most."""
        return sorted(self.result.receivers, key=lambda row: (row.equal, -(row.loss or 0), -(row.nacks_sent or 0)))


def is_run(folder: Path) -> bool:
    """Return whether a folder holds one run. UsageError for one with runs of several cases."""
    if (folder / "result.json").is_file():
        return True
    cases = sorted(path.parent.name for path in folder.glob("*/result.json"))
    if cases and not is_sweep(folder):
        some = first_names((folder / name for name in cases), _MOST_CASES)
        raise UsageError(f"{folder}: holds {len(cases)} runs; name one: {some}")
    return False


def open_run(folder: Path) -> RunFolder:
    """Read a run's folder; UsageError if a file is missing or not of this version."""
    plain = _read(folder / "result.json")
    scenario = _read(folder / "scenario.json")
    try:
        rows = tuple(Row(**row) for row in plain.pop("receivers"))
        optional = ("receivers", "messages", "statistics")
        values = {item.name: plain[item.name] for item in fields(Result) if item.name not in optional}
        result = Result(**values, receivers=rows, messages=plain.get("messages"), statistics=plain.get("statistics"))
        float(result.metrics["duration"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{folder / 'result.json'}: is no result of this version; run the scenario again") from error
    try:
        topology = TypeAdapter[Any](AnyTopology).validate_python(scenario["topology"]).build()
        found = RunFolder(folder, result, scenario, topology)
        # They read the scenario; a value of the wrong kind is found here.
        _ = found.groups, found.attendance, found.senders[0]
    except (LookupError, TypeError, ValueError, AttributeError, ConfigError, UsageError) as error:
        raise UsageError(f"{folder / 'scenario.json'}: is no scenario of this version; run the scenario again") from error
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(read_text(path, _LARGEST))
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror}); mcastlab run SCENARIO.yaml --out RUN") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is no JSON") from error
    if not isinstance(plain, dict):
        raise UsageError(f"{path}: is not what mcastlab run wrote")
    return plain

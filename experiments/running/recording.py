"""Record files during a run: captures, and in the simulator also a trace and time series."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from experiments.output.extras import need
from experiments.running.authentication import simulated_codec
from experiments.running.record_file import NO_ROOM, RecordFile, open_unbuffered
from experiments.scenario.scenario import Scenario
from protocols.errors import UnsupportedError, UsageError
from sim.series import MEASURES, Series
from sim.sniffer import Encoder, Sniffer, check_point
from sim.tracer import Tracer
from sim.watch import Watcher
from topologies.names import file_name
from topologies.spec import Topology

if TYPE_CHECKING:
    from emu.packet_capture import CapturePoint

__all__ = ["Recording", "Records"]

MOST_INTERVALS = 1_000_000
"""Intervals of a time series in a run, at most."""
_PACKET, _ENTRY = bytes((6, 0, 0, 0)), b'{"time"'
"""First bytes of a packet in a capture (Enhanced Packet Block of pcapng), and of an event in a trace (JSON)."""
ALL_HOSTS, MOST_CAPTURED = "hosts", 200
"""The capture point that stands for every host, and how many hosts it may stand for."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The files a run writes: a pcapng for each capture point in the folder `captures`, a trace, and a Parquet time series.

    `interval` is that of the time series, in seconds.
    """

    points: tuple[str, ...] = ()
    captures: Path | None = None
    trace: Path | None = None
    traced: tuple[str, ...] | None = None
    """The hosts in the trace; None for all."""
    series: Path | None = None
    interval: float = 0.1

    @staticmethod
    def of(scenario: Scenario, folder: Path | None, trace: Path | None = None) -> "Recording | None":
        """Return the recording that a scenario requests in `folder`, its trace in the file `trace` if given; None for no files.

        UsageError for capture points and hosts that don't exist, UnsupportedError without pyarrow for time series.
        """
        recording = Recording(trace=trace)
        if isinstance(scenario.trace, tuple):
            recording = replace(recording, traced=scenario.trace)
        wanted = [key for key in ("capture", "trace", "series") if getattr(scenario, key) and not (key == "trace" and trace)]
        if wanted and folder is None:
            raise UsageError(f"{wanted[0]}: needs a folder to write to; give --out DIR")
        if wanted and folder is not None:
            recording = replace(
                recording,
                points=_points(scenario),
                captures=folder / "captures" if scenario.capture else None,
                trace=trace or (folder / "trace.jsonl" if scenario.trace else None),
                series=folder / "series.parquet" if scenario.series else None,
                interval=scenario.series or recording.interval,
            )
        return recording._checked(scenario) if wanted or trace else None

    def _checked(self, scenario: Scenario) -> "Recording":
        if self.series is not None:
            need("series", "pyarrow")
        topology = scenario.build_topology()
        for point in self.points:
            _named("capture", point, lambda name: check_point(topology, name))
        for host in self.traced or ():
            _named("trace", host, topology.member)
        if self.series is not None and scenario.duration / self.interval > MOST_INTERVALS:
            least = scenario.duration / MOST_INTERVALS
            raise UsageError(f"series: value {self.interval!r} is not allowed; at least {least:g} s in a run of this duration")
        return self

    @contextmanager
    def watchers(self, scenario: Scenario, topology: Topology) -> Iterator["Records"]:
        """Open the watchers of a simulated run; at the end, close their files and write the time series.

        A run that is refused before its first event leaves files that were there as they were.
        """
        with ExitStack() as stack:
            records = Records()
            encoder = Encoder(topology, simulated_codec(scenario.protocol.spec, scenario.protocol.config)())
            for point, path in self._files():
                file = records.captures[point] = stack.enter_context(RecordFile(path, _PACKET))
                records.watchers.append(Sniffer(topology, point, cast(BinaryIO, file), encoder))
            if self.trace is not None:
                text = records.trace = stack.enter_context(RecordFile(self.trace, _ENTRY))
                records.watchers.append(Tracer(topology, cast(TextIO, text), _about(scenario), self.traced))
            if self.series is not None:
                series = Series(self.interval, sum(work.count for work in scenario.files))
                records.watchers.append(series)
                stack.callback(records.keep, series, self.series, self.interval)
            yield records

    @contextmanager
    def capture_points(self, topology: Topology) -> "Iterator[list[CapturePoint]]":
        """Open the capture points of an emulation. UnsupportedError for trace and series, which Mininet has not."""
        if self.trace is not None or self.series is not None:
            key = "trace" if self.trace is not None else "series"
            raise UnsupportedError(f"{key}: only the simulator writes it; leave it out, or use --on sim")
        from emu.packet_capture import CapturePoint

        with ExitStack() as stack:
            found = []
            for point, path in self._files():
                file = stack.enter_context(open_unbuffered(path))
                found.append(CapturePoint(point, check_point(topology, point), file))
            yield found

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Yield each capture point with the path of its file."""
        for point in self.points:
            assert self.captures is not None
            yield point, self.captures / f"{file_name(point)}.pcapng"


@dataclass(slots=True)
class Records:
    """The watchers of a simulated run, and their files."""

    watchers: list[Watcher] = field(default_factory=list)
    captures: dict[str, RecordFile] = field(default_factory=dict)
    trace: RecordFile | None = None
    unwritten_rows: int = 0
    """Rows of the time series for which the disk had no room."""

    def keep(self, series: Series, path: Path, interval: float) -> None:
        """Write a time series, or count its rows if there is no room for them."""
        try:
            _write_series(series, path, interval)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self.unwritten_rows = len(series.rows)
            path.unlink(missing_ok=True)

    def metrics(self) -> dict[str, Any]:
        """Return what the closed captures have, by the names of an emulation, and what is missing in the other files."""
        captures = {
            name: {"packets": file.written, "unseen": 0, "unwritten": file.unwritten} for name, file in self.captures.items()
        }
        missing = {"trace": self.trace.unwritten if self.trace is not None else 0, "series": self.unwritten_rows}
        unwritten = {name: count for name, count in missing.items() if count}
        return ({"captures": captures} if captures else {}) | ({"unwritten": unwritten} if unwritten else {})


def _points(scenario: Scenario) -> tuple[str, ...]:
    """Return the capture points of a scenario, with all hosts in place of `hosts`. UsageError for too many."""
    hosts = scenario.build_topology().hosts if ALL_HOSTS in scenario.capture else ()
    if ALL_HOSTS in hosts or not hosts:
        return scenario.capture
    if len(hosts) > MOST_CAPTURED:
        raise UsageError(
            f"capture: {ALL_HOSTS!r} is not allowed for {len(hosts):,} hosts; at most {MOST_CAPTURED}, so name some"
        )
    return tuple(dict.fromkeys(name for point in scenario.capture for name in (hosts if point == ALL_HOSTS else (point,))))


def _named(key: str, name: str, check: Callable[[str], object]) -> None:
    try:
        check(name)
    except UsageError as error:
        raise UsageError(f"{key}: {error}") from error


def _about(scenario: Scenario) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "digest": scenario.digest(),
        "seed": scenario.seed,
        "protocol": scenario.protocol.name,
        "senders": scenario.senders,
        "unit": "seconds",
    }


def _write_series(series: Series, path: Path, interval: float) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    times, measures, of, values = zip(*series.rows, strict=True) if series.rows else ((), (), (), ())
    columns = {
        "time": pa.array(times, pa.float64()),
        "measure": pa.array(measures, pa.string()).dictionary_encode(),
        "of": pa.array(of, pa.string()).dictionary_encode(),
        "value": pa.array(values, pa.float64()),
    }
    about = {"interval": str(interval), "measures": json.dumps(MEASURES)}
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns).replace_schema_metadata(about), path)

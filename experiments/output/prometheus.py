"""Statistics for Prometheus: a snapshot as metric families, and the HTTP endpoint that serves them.

A measure of a part becomes `mcastlab_<part>_<measure>_<unit>`, with a label for each part above it. Names of parts, which may
come from the network, are values of labels only; the library escapes them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from experiments.output.extras import need
from experiments.output.safe_text import printable
from protocols.errors import UsageError
from protocols.snapshot import Measure, Path, Snapshot, measure_of

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["MOST_PARTS", "Endpoint", "endpoint_of", "exposition", "families_of", "serving"]

MOST_PARTS: Final = 50
"""Parts of one kind below one part that become labels; Prometheus keeps a time series of each for weeks."""
LONGEST_NAME: Final = 200
"""Characters of the name of a part, beyond which it is cut."""
LOOPBACK: Final = "127.0.0.1"
_SUFFIXES: Final = {"": "", "bytes": "_bytes", "seconds": "_seconds", "bytes/s": "_bytes_per_second", "ratio": "_ratio"}

Endpoint = tuple[str, int]


def endpoint_of(text: str) -> Endpoint:
    """Return address and port of "ADDR:PORT", ":PORT" or "PORT"; the address is the loopback one unless it is given."""
    need("--metrics", "prometheus_client")
    address, _, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]") or LOOPBACK
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= 0xFFFF):
        # Port 0 would be any free one, which no configuration of Prometheus could name.
        raise UsageError(f"--metrics: value {text!r} is not allowed; ADDR:PORT or PORT, as in 127.0.0.1:9100")
    return address, int(port)


@contextmanager
def serving(endpoint: Endpoint, snapshot: Callable[[], Snapshot | None], measures: Mapping[str, Measure]) -> Iterator[int]:
    """Serve metrics while the context lasts; yield the port. `snapshot` is called by a thread for each request.

    UsageError where the address can't be used.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(_Collector(snapshot, measures))
    address, port = endpoint
    try:
        server, thread = start_http_server(port, address, registry)
    except OSError as error:
        raise UsageError(f"--metrics: {address}:{port} can't be used ({error.strerror or error})") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def exposition(snapshot: Snapshot, measures: Mapping[str, Measure], most: int = MOST_PARTS) -> tuple[bytes, str]:
    """Return the metrics of a snapshot as text for Prometheus, and the type of this content."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(lambda: snapshot, measures, most))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Collector:
    """Makes metric families of a new snapshot whenever they are asked for."""

    def __init__(
        self, snapshot: Callable[[], Snapshot | None], measures: Mapping[str, Measure], most: int = MOST_PARTS
    ) -> None:
        self._snapshot = snapshot
        self._measures = measures
        self._most = most

    def describe(self) -> Sequence["Metric"]:
        """Return nothing: what there is depends on the session."""
        return ()

    def collect(self) -> Sequence["Metric"]:
        """Return the families of the present."""
        snapshot = self._snapshot()
        return [] if snapshot is None else families_of(snapshot, self._measures, self._most)


def families_of(snapshot: Snapshot, measures: Mapping[str, Measure], most: int) -> list["Metric"]:
    """Return the metric families of a snapshot: counters, gauges, and states as gauges that are 1.

    Of the parts of one kind below another, at most `most` are shown.
    """
    kept = list(_bounded(snapshot, (), most))
    labels: dict[str, dict[str, None]] = {}
    for path, part in kept:
        labels.setdefault(part.part, {}).update(dict.fromkeys(kind for kind, name in path if name))
    families: dict[str, Any] = {}
    for path, part in kept:
        names = list(labels[part.part])
        row = [_label(path, kind) for kind in names]
        for name, value in part.values.items():
            _family(families, part.part, measure_of(name, measures), names).add_metric(row, value)
        for name, word in part.states.items():
            about = Measure(name, "1 for the state it is in", "", "gauge")
            _family(families, part.part, about, [*names, "state"]).add_metric([*row, printable(word)], 1)
        for kind, count in _left_out(part, most).items():
            about = Measure("left_out", "parts that are not shown, since there are too many", "", "gauge")
            _family(families, part.part, about, [*names, "of"]).add_metric([*row, kind], count)
    return list(families.values())


def _bounded(snapshot: Snapshot, above: Path, most: int) -> Iterator[tuple[Path, Snapshot]]:
    """Yield a part and those below it with their paths, the first `most` of each kind."""
    path = (*above, (snapshot.part, snapshot.name))
    yield path, snapshot
    counts: Counter[str] = Counter()
    for part in snapshot.parts:
        counts[part.part] += 1
        if counts[part.part] <= most:
            yield from _bounded(part, path, most)


def _left_out(snapshot: Snapshot, most: int) -> dict[str, int]:
    """Return how many parts of each kind are not shown."""
    counts = Counter(part.part for part in snapshot.parts)
    return {kind: count - most for kind, count in counts.items() if count > most}


def _label(path: Path, kind: str) -> str:
    """Return the name of the part of one kind in a path; of several, one behind the other."""
    return printable("/".join(name for other, name in path if other == kind and name))[:LONGEST_NAME]


def _family(families: dict[str, Any], part: str, measure: Measure, labels: list[str]) -> Any:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    name = _identifier(f"mcastlab_{part}_{measure.name.removeprefix('bytes_')}{_SUFFIXES[measure.unit]}")
    known = families.get(name)
    if known is None:
        made = CounterMetricFamily if measure.kind == "counter" else GaugeMetricFamily
        known = families[name] = made(name, measure.help, labels=[_identifier(label) for label in labels])
    return known


def _identifier(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", text)

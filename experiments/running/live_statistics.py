"""Statistics of a command on a real network while it runs: shown at an interval, served to Prometheus and to monitors."""

import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TextIO

from emu.host import UdpHost
from experiments.monitor.announcement import Announcement
from experiments.output.prometheus import Endpoint, endpoint_of, serving
from experiments.output.statistics_view import StatisticsView
from experiments.running.live import Live
from protocols.errors import ConfigError, UsageError
from protocols.snapshot import Measure, Snapshot, measures_by_name
from topologies.units import parse_duration

__all__ = ["WantedStatistics"]

LEAST_INTERVAL, LONGEST_INTERVAL = 0.01, 1e6
"""Seconds between two snapshots that are shown."""
PATIENCE = 1.0
"""Seconds for which a request of Prometheus waits for the event loop."""


@dataclass(frozen=True, slots=True)
class WantedStatistics:
    """Requested statistics: printed at an interval in seconds, and served at an address of this machine; None: not."""

    interval: float | None = None
    endpoint: Endpoint | None = None

    @staticmethod
    def of(stats: str | None, metrics: str | None) -> "WantedStatistics":
        """Read the options `--stats` and `--metrics`. UsageError for other values, UnsupportedError without the library."""
        return WantedStatistics(None if stats is None else _interval(stats), None if metrics is None else endpoint_of(metrics))

    @contextmanager
    def told(
        self,
        runner: Live,
        host: UdpHost,
        own: Iterable[Measure] = (),
        *,
        as_json: bool = False,
        out: TextIO | None = None,
        managed: int | None = None,
    ) -> Iterator[StatisticsView | None]:
        """Show and serve the statistics of a host within the block, and once more at its end; yield the view, None without one.

        Monitors of the same user find the host meanwhile. The view goes to `out`; None: as JSON to standard output, else to
        standard error. `own` are the measures of the protocol, `managed` the id of the process on a management group.
        """
        own = tuple(own)
        measures = measures_by_name(own)
        with ExitStack() as stack:
            stack.callback(Announcement(runner.loop, lambda: (host.now, host.snapshot()), own, managed).close)
            if self.endpoint is not None:
                stack.enter_context(serving(self.endpoint, lambda: _ask(runner, host), measures))
            if self.interval is None:
                yield None
                return
            view = StatisticsView(out or (sys.stdout if as_json else sys.stderr), measures, as_json=as_json)
            stack.callback(view.close)

            def show() -> None:
                view.show(host.now, host.snapshot())

            runner.every(self.interval, show)
            try:
                yield view
            finally:
                show()


def _interval(text: str) -> float:
    try:
        interval = parse_duration(text)
    except ConfigError as error:
        raise UsageError(f"--stats: {error}") from error
    if not LEAST_INTERVAL <= interval <= LONGEST_INTERVAL:
        raise UsageError(f"--stats: value {text!r} is not allowed; from 10ms to {LONGEST_INTERVAL:.0f}s")
    return interval


def _ask(runner: Live, host: UdpHost) -> Snapshot | None:
    """Return a snapshot made in the thread of the event loop, since machines are not thread-safe; None when it does not run."""
    answer: Future[Snapshot] = Future()

    def make() -> None:
        if answer.set_running_or_notify_cancel():
            answer.set_result(host.snapshot())

    try:
        runner.loop.call_soon_threadsafe(make)
        return answer.result(PATIENCE)
    except (RuntimeError, TimeoutError):
        answer.cancel()
        return None

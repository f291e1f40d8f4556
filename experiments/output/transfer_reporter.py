"""Report the progress of `mcastlab send` and `recv`: JSON lines on stdout, or text lines and a progress bar."""

import errno
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, TextIO

from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from experiments.output.safe_text import printable
from experiments.output.statistics_view import StatisticsView
from protocols.events import NodeClash
from protocols.machine import Event

__all__ = ["UNKNOWN_DIGEST", "TransferReporter", "TransferStatus", "file_row", "summary"]


UNKNOWN_DIGEST = "(not hashed)"
MOST_PROBLEMS = 20
"""Lines about problems written between two ticks, so that a flood of them costs little."""


@dataclass(frozen=True, slots=True)
class TransferStatus:
    """State of a transfer: bytes done, bytes in total, fraction of packets lost, NACKs so far."""

    done: int
    total: int
    loss: float
    nacks: int


class TransferReporter:
    """Context manager that reports a transfer; the bar is drawn on stderr if it is a terminal. `brief` leaves out details.

    Without a `bar` there is none, as where statistics are shown instead.
    """

    def __init__(
        self, title: str, as_json: bool, measure: Callable[[], TransferStatus], *, brief: bool = False, bar: bool = True
    ) -> None:
        self.as_json = as_json
        self.statistics: StatisticsView | None = None
        """What shows statistics meanwhile."""
        self._brief = brief
        self._measure = measure
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("loss {task.fields[loss]:.1%}  NACKs {task.fields[nacks]}"),
        )
        drawn = bar and not as_json and sys.stderr.isatty()
        self._bar = Progress(*columns, disable=not drawn, auto_refresh=False, transient=True, console=_stderr())
        self._task: TaskID = self._bar.add_task(title, total=None, loss=0.0, nacks=0)
        self._problems = 0

    def __enter__(self) -> "TransferReporter":
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()
        self._count_problems()

    def tick(self) -> None:
        """Redraw the progress bar, and count the problems that were not written."""
        self._count_problems()
        if not self._bar.disable:
            now = self._measure()
            self._bar.update(self._task, completed=now.done, total=now.total or None, loss=now.loss, nacks=now.nacks)
            self._bar.refresh()

    def event(self, event: Event, now: float) -> None:
        """Write an event of the protocol in JSON mode; else only that another host uses a node id."""
        if self.as_json:
            self.object(_snake(type(event).__name__), time=round(now, 6), **_plain(event))
        elif isinstance(event, NodeClash):
            both = f"another node, at {event.source}, has node id {event.node}, too, and both are taken for one"
            self.problem(f"{both}; give it another --node")

    def object(self, event: str, /, **values: Any) -> None:
        """Write one JSON object as a line on stdout."""
        _print(json.dumps({"event": event, **values}), sys.stdout)

    def line(self, text: str) -> None:
        """Write one text line on stdout with control characters escaped, unless in JSON mode."""
        self._write(text, sys.stdout)

    def detail(self, text: str) -> None:
        """Write a line about a part of the transfer, such as one file, unless the report is brief or in JSON mode."""
        if not self._brief:
            self.line(text)

    def problem(self, text: str) -> None:
        """Write one text line on stderr, unless in JSON mode; of many between two ticks, some and the number of the others."""
        self._problems += 1
        if self._problems <= MOST_PROBLEMS:
            self._write(text, sys.stderr)

    def _count_problems(self) -> None:
        more, self._problems = self._problems - MOST_PROBLEMS, 0
        if more > 0:
            self._write(f"... and {more} more", sys.stderr)

    def _write(self, text: str, to: TextIO) -> None:
        if not self.as_json:
            going_on, statistics = self._bar.live.is_started, self.statistics
            self._bar.stop()
            if statistics is not None:
                statistics.pause()
            _print(printable(text), to)
            if statistics is not None:
                statistics.go_on()
            if going_on:
                self._bar.start()


def _print(text: str, to: TextIO) -> None:
    """Write a line. On a full disk it waits in the stream's buffer for the next one, since a transfer must not end for it."""
    try:
        print(text, file=to, flush=True)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _plain(event: Event) -> dict[str, Any]:
    values = {item.name: getattr(event, item.name) for item in fields(event)}  # type: ignore[arg-type]
    return {key: value.decode(errors="replace") if isinstance(value, bytes) else value for key, value in values.items()}


def file_row(name: str, size: int, sha256: str | None) -> dict[str, Any]:
    """Return the entry of a file in the summary; `sha256` is None if there was no time to hash it, or it could not be read."""
    return {"name": name, "size": size, "sha256": sha256}


def summary(
    *,
    ok: bool,
    files: list[dict[str, Any]],
    seconds: float,
    loss: float,
    sent: dict[str, int],
    cpu: float,
    refused: tuple[int, str],
    whole: list[dict[str, Any]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the last JSON object of `send` and `recv`; `sent` holds the counters of the machine, `more` further entries.

    `refused` is the number of packets the kernel refused to send, and its last reason. Objects and bytes are counted of the
    files `whole`, by default of all.
    """
    whole = files if whole is None else whole
    octets = sum(row["size"] for row in whole)
    return {
        "ok": ok,
        "objects": len(whole),
        "bytes": octets,
        "files": files,
        "seconds": round(seconds, 6),
        "goodput_mbit_s": round(octets * 8e-6 / seconds, 6) if seconds > 0 else 0.0,
        "loss": round(loss, 6),
        "nacks_sent": sent.get("nacks_sent", 0),
        "nacks_received": sent.get("nacks_received", 0),
        "repairs": sent.get("repairs_sent", 0),
        "send_errors": refused[0],
        "send_error": refused[1] or None,
        "cpu_s": round(cpu, 6),
        **more,
    }

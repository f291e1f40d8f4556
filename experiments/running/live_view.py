"""What the hosts of an emulation do, second by second: a table that changes, or a line where there is no terminal."""

from collections.abc import Mapping

from rich.console import Console
from rich.live import Live
from rich.table import Table

__all__ = ["LiveView"]

_AROUND, _FEWEST = 7, 4
"""Lines of a table beside its hosts, and hosts that are shown however small the terminal is."""
_COLUMNS = ("sent Mbit/s", "sent packets/s", "received packets/s", "loss", "NACKs/s")

Counts = Mapping[str, float]


class LiveView:
    """Shows on stderr what hosts did in each second, from their counters.

    More hosts than fit are left out: those that send and those that lose most are shown.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = console or Console(stderr=True)
        self._before: dict[str, Counts] = {}
        self._live: Live | None = None

    def __call__(self, now: float, census: Mapping[str, Counts]) -> None:
        """The counts of the second that ends `now`."""
        done = {name: _done(counts, self._before.get(name, {})) for name, counts in census.items()}
        self._before = {name: dict(counts) for name, counts in census.items()}
        if not self._console.is_terminal:
            self._console.print(self._line(now, done), markup=False, highlight=False, soft_wrap=True)
            return
        if self._live is None:
            # Begun here and not before: this is another process than the one that made the view.
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(self._table(now, done), refresh=True)

    def _line(self, now: float, done: Mapping[str, Counts]) -> str:
        sent = sum(counts.get("octets", 0) for counts in done.values()) * 8e-6
        nacks = sum(counts.get("nacks_sent", 0) for counts in done.values())
        lost = sum(counts.get("data_lost", 0) for counts in done.values())
        heard = lost + sum(counts.get("data_received", 0) for counts in done.values())
        return f"{now:g} s: {len(done)} hosts sent {sent:.2f} Mbit/s, loss {_share(lost, heard)}, {nacks:.0f} NACKs/s"

    def _table(self, now: float, done: Mapping[str, Counts]) -> Table:
        table = Table(title=f"{self._title}, second {now:g}", title_justify="left")
        table.add_column("host")
        for name in _COLUMNS:
            table.add_column(name, justify="right")
        shown = sorted(done, key=lambda name: _interest(done[name]), reverse=True)[
            : max(_FEWEST, self._console.height - _AROUND)
        ]
        for name in (name for name in done if name in shown):
            table.add_row(name, *_cells(done[name]))
        if len(shown) < len(done):
            table.caption = f"and {len(done) - len(shown)} hosts that lost less"
        return table


def _done(counts: Counts, before: Counts) -> Counts:
    """What was done in a second since; a host that came back counts from 0 again."""
    seconds = counts["at"] - before.get("at", 0.0)
    if seconds <= 0:
        # Nothing new came from it, since it crashed or has too much to do.
        return {}
    return {key: max(0.0, (count - before.get(key, 0)) / seconds) for key, count in counts.items()}


def _interest(counts: Counts) -> tuple[float, float]:
    return counts.get("octets", 0), counts.get("data_lost", 0)


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _cells(counts: Counts) -> tuple[str, ...]:
    lost, received = counts.get("data_lost", 0), counts.get("data_received", 0)
    return (
        f"{counts.get('octets', 0) * 8e-6:.2f}",
        f"{counts.get('packets', 0):.0f}",
        f"{received:.0f}",
        _share(lost, lost + received),
        f"{counts.get('nacks_sent', 0):.0f}",
    )

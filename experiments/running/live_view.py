"""Show the rates of the hosts of an emulation every second: a table on a terminal, else a line of text."""

from collections.abc import Iterable, Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from experiments.output.budget import Column, Table
from experiments.output.counted import counted
from experiments.output.printer import View, draw

__all__ = ["LiveView"]

_AROUND, _FEWEST = 7, 4
"""Lines of the table that are not hosts, and hosts shown on the smallest terminal."""
_COLUMNS = (
    Column("host", rank=0),
    Column("sent", "Mbit/s", rank=1, form=".2f"),
    Column("sent packets", "1/s", rank=5, form=".0f"),
    Column("received packets", "1/s", rank=4, form=".0f"),
    Column("loss", "%", rank=2, form=".1f"),
    Column("NACKs", "1/s", rank=3, form=".0f"),
)
_RING = Column("ring", "%", rank=2, form=".0f")

Counts = Mapping[str, float]


class LiveView:
    """Show on stderr the rates of each host, as differences of its counters, in the order of `hosts`.

    On a small terminal the hosts that sent most so far, then those that lost most, are shown. It may be called in a forked
    process, which need not come to its end; the block that ends gives the terminal back.
    """

    def __init__(self, title: str, hosts: Iterable[str] = (), console: Console | None = None) -> None:
        self._title = title
        self._places = {name: place for place, name in enumerate(dict.fromkeys(hosts))}
        self._console = console or Console(stderr=True)
        self._before: dict[str, Counts] = {}
        self._live: Live | None = None

    def __enter__(self) -> "LiveView":
        return self

    def __exit__(self, *error: object) -> None:
        """Show the cursor again, below the table."""
        if self._console.is_terminal:
            self._console.line()
            self._console.show_cursor()

    def __call__(self, now: float, census: Mapping[str, Counts]) -> None:
        """Show the rates since the last call; `census` holds the counters of each host at `now` seconds."""
        # The census lists hosts in the order in which their first counters arrived.
        ordered = sorted(census, key=lambda name: self._places.get(name, len(self._places)))
        rates = {name: _rates(census[name], self._before.get(name, {})) for name in ordered}
        self._before = {name: dict(counts) for name, counts in census.items()}
        if not self._console.is_terminal:
            self._console.print(self._line(now, rates, census), markup=False, highlight=False, soft_wrap=True)
            return
        if self._live is None:
            # Started at the first call, since the view was constructed in another process.
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(self._table(now, rates, census), refresh=True)

    def _line(self, now: float, rates: Mapping[str, Counts], census: Mapping[str, Counts]) -> str:
        sent = sum(counts.get("octets", 0) for counts in rates.values()) * 8e-6
        nacks = [counts["nacks_sent"] for counts in rates.values() if "nacks_sent" in counts]
        lost = sum(counts.get("data_lost", 0) for counts in rates.values())
        heard = lost + sum(counts.get("data_received", 0) for counts in rates.values())
        asked = _whole(sum(nacks) if nacks else None)
        rings = [f"{name} {_ring(counts):.0f} %" for name, counts in census.items() if "ring_size" in counts]
        told = f"; rings: {', '.join(rings)}" if rings else ""
        hosts = counted(len(rates), "host")
        return f"{now:g} s: {hosts} sent {sent:.2f} Mbit/s, loss {_share(lost, heard)}, {asked} NACKs/s{told}"

    def _table(self, now: float, rates: Mapping[str, Counts], census: Mapping[str, Counts]) -> Group:
        shown = sorted(rates, key=lambda name: _interest(census[name]), reverse=True)[
            : max(_FEWEST, self._console.height - _AROUND)
        ]
        has_ring = any("ring_size" in counts for counts in census.values())
        rows = [[name, *_cells(rates[name]), *([_ring(census[name])] if has_ring else [])] for name in rates if name in shown]
        columns = (*_COLUMNS, _RING) if has_ring else _COLUMNS
        drawn, _ = draw(Table(columns, rows), View(), self._console.width, self._console.encoding)
        rest = (
            [Text(f"and {counted(len(rates) - len(shown), 'host')} that sent or lost less")] if len(shown) < len(rates) else []
        )
        return Group(Text(f"{self._title}, second {now:g}"), drawn, *rest)


def _rates(counts: Counts, before: Counts) -> Counts:
    """Return the rates per second between two sets of counters; a restarted host counts from 0."""
    seconds = counts["at"] - before.get("at", 0.0)
    if seconds <= 0:
        # The host sent no new counters: it crashed or is overloaded.
        return {}
    return {key: max(0.0, (count - before.get(key, 0)) / seconds) for key, count in counts.items()}


def _interest(counts: Counts) -> tuple[float, float]:
    return counts.get("octets", 0), counts.get("data_lost", 0)


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _cells(counts: Counts) -> tuple[float | None, ...]:
    lost, received = counts.get("data_lost", 0), counts.get("data_received", 0)
    return (
        counts.get("octets", 0) * 8e-6,
        float(counts.get("packets", 0)),
        counts.get("data_received"),
        lost / (lost + received) * 100 if lost + received else None,
        counts.get("nacks_sent"),
    )


def _ring(counts: Counts) -> float | None:
    """Return the share of a tunnel's ring that is in use, in per cent; None for a host without a ring."""
    return 100 * counts["ring_used"] / counts["ring_size"] if "ring_size" in counts else None


def _whole(rate: float | None) -> str:
    """Format a rate; None where it is not counted."""
    return "-" if rate is None else f"{rate:.0f}"

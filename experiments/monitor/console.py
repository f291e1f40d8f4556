"""The console: tables of domains, processes, connections, publishers and subscribers in a terminal.

It shows the rows of `experiments.monitor.domain` once a second, and writes only the cells that have changed.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable, Input, Static, TabbedContent, TabPane
from textual.widgets.data_table import ColumnKey

from experiments.monitor.domain import GONE, Row
from experiments.monitor.watcher import Watcher
from experiments.output.safe_text import printable
from protocols.rate_history import NONE

__all__ = ["TABLES", "Column", "ConsoleApp", "RowsTable"]

Cell: TypeAlias = str | float
WIDEST: Final = 32
"""Characters of a cell of text."""
FROM_TIME: Final = -12
"""Where the time of day begins in the time of a peak."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, what its cell holds, by which rows are sorted, and how that is written."""

    title: str
    value: Callable[[Row], Cell]
    text: Callable[[Cell], str] = str


def _count(value: Cell) -> str:
    number, prefixes = float(value), ["", "k", "M", "G"]
    while abs(number) >= 999.5 and len(prefixes) > 1:
        number /= 1000
        del prefixes[0]
    return f"{number:.4g}{prefixes[0]}"


def _bits(value: Cell) -> str:
    return f"{_count(8 * float(value))}b" if value else "0"


def _seconds(value: Cell) -> str:
    return f"{float(value):.1f} s" if value else ""


def _rate(name: str, place: int, peak: bool = False) -> Callable[[Row], Cell]:
    def value(row: Row) -> Cell:
        rate = row.flows.get(name, NONE).rates[place]
        return rate.peak if peak else rate.current

    return value


def _peak_at(name: str) -> Callable[[Row], Cell]:
    return lambda row: str(row.flows.get(name, NONE).rates[0].peak_at or "")[FROM_TIME:]


def _total(name: str) -> Callable[[Row], Cell]:
    return lambda row: row.flows.get(name, NONE).total


def _requests(name: str) -> Callable[[Row], Cell]:
    return lambda row: row.requests.get(f"requests_{name}", 0)


def _rates(word: str) -> list[Column]:
    """Return the columns of what is sent, or received: messages and bits per second, now, over times, and at most."""
    messages, octets = f"messages_{word}", f"bytes_{word}"
    return [
        Column(f"{word}/s", _rate(messages, 0), _count),
        Column("1 min", _rate(messages, 1), _count),
        Column("5 min", _rate(messages, 2), _count),
        Column("peak", _rate(messages, 0, peak=True), _count),
        Column("at", _peak_at(messages)),
        Column("bit/s", _rate(octets, 0), _bits),
        Column("peak bit/s", _rate(octets, 0, peak=True), _bits),
        Column("total", _total(messages), _count),
    ]


PROCESS: Final = Column("process", lambda row: row.process)
PLACE: Final = Column("where", lambda row: row.place)
STATE: Final = Column("state", lambda row: "lags" if row.lag and row.state != GONE else row.state)
CONNECTION: Final = Column("connection", lambda row: row.connection)
DOMAIN: Final = Column("domain", lambda row: row.domain)
QUEUE: Final = [
    Column("queue", lambda row: row.queue, _count),
    Column("most", lambda row: row.queue_peak, _count),
    Column("lag", lambda row: row.lag, _seconds),
]
REQUESTS: Final = [
    Column("rtx in", _requests("in"), _count),
    Column("out", _requests("out"), _count),
    Column("seen", _requests("seen"), _count),
]
TABLES: Final[dict[str, tuple[list[Column], Callable[[Row], bool]]]] = {
    "processes": (
        [
            *(PROCESS, PLACE, STATE),
            Column("since", lambda row: row.started),
            Column("connections", lambda row: row.connection),
            Column("publishers", lambda row: row.publishers),
            Column("subscribers", lambda row: row.subscribers),
            Column("subscriptions", lambda row: row.subscriptions, _count),
            DOMAIN,
        ],
        lambda row: True,
    ),
    "connections": (
        [
            *(PROCESS, CONNECTION, STATE),
            Column("sent/s", _rate("messages_sent", 0), _count),
            Column("received/s", _rate("messages_received", 0), _count),
            Column("bit/s sent", _rate("bytes_sent", 0), _bits),
            Column("bit/s received", _rate("bytes_received", 0), _bits),
            *QUEUE,
            *REQUESTS,
            DOMAIN,
        ],
        lambda row: row.connection != "-",
    ),
    "publishers": ([PROCESS, CONNECTION, STATE, *_rates("sent"), REQUESTS[0]], lambda row: row.publishers > 0),
    "subscribers": (
        [PROCESS, CONNECTION, STATE, *_rates("received"), *QUEUE, *REQUESTS[1:]],
        lambda row: row.subscribers > 0,
    ),
}
"""Tables by name: their columns, and which rows they have."""


class RowsTable(DataTable[Text]):
    """A table of rows that writes only what has changed."""

    def __init__(self, columns: list[Column], wanted: Callable[[Row], bool]) -> None:
        super().__init__(cursor_type="row", zebra_stripes=False)
        self._columns_of_rows = columns
        self._wanted = wanted
        self._keys: list[ColumnKey] = []
        self._shown: dict[str, tuple[list[Cell], list[str]]] = {}
        self.order = (0, False)
        """Place of the column by which rows are sorted, and whether downwards."""
        self.written = 0
        """Cells written so far."""

    def on_mount(self) -> None:
        """Make the columns."""
        self._keys = [self.add_column(column.title, key=str(place)) for place, column in enumerate(self._columns_of_rows)]

    def show_rows(self, rows: Iterable[Row]) -> None:
        """Show these rows, and no others."""
        wanted = {row.key: row for row in rows if self._wanted(row)}
        for key in [key for key in self._shown if key not in wanted]:
            self.remove_row(key)
            del self._shown[key]
        places = False
        for key, row in wanted.items():
            places |= self._show(key, row)
        if places:
            self.sort_rows()

    def _show(self, key: str, row: Row) -> bool:
        """Show one row; return whether its place may have changed."""
        values = [column.value(row) for column in self._columns_of_rows]
        texts = [_short(column.text(value)) for column, value in zip(self._columns_of_rows, values, strict=True)]
        known = self._shown.get(key)
        self._shown[key] = (values, texts)
        if known is None:
            self.add_row(*(_cell(text, row) for text in texts), key=key)
            self.written += len(texts)
            return True
        for place, (before, text) in enumerate(zip(known[1], texts, strict=True)):
            if before != text:
                # Widths change with new rows only; each new width would draw the whole table.
                self.update_cell(key, self._keys[place], _cell(text, row))
                self.written += 1
        return known[0][self.order[0]] != values[self.order[0]]

    def sort_rows(self) -> None:
        """Put the rows in order, if they are not."""
        place, downwards = self.order
        ordered = sorted(self._shown, key=lambda key: (self._shown[key][0][place], key), reverse=downwards)
        if ordered != [row.key.value for row in self.ordered_rows]:
            # Its key of sorting is a cell, and not the row.
            ranks = {id(self.get_cell(key, self._keys[0])): rank for rank, key in enumerate(ordered)}
            self.sort(self._keys[0], key=lambda cell: ranks[id(cell)])

    def forget(self) -> None:
        """Show nothing."""
        self.clear()
        self._shown.clear()


def _short(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= WIDEST else f"{shown[: WIDEST - 1]}…"


def _cell(text: str, row: Row) -> Text:
    return Text(text, "dim" if row.state == GONE else "", no_wrap=True)


class ConsoleApp(App[None]):
    """The console of a watcher."""

    TITLE = "mcastlab console"
    CSS = """
    #line, #news { height: 1; }
    #filter { height: 1; border: none; padding: 0; display: none; }
    #filter.shown { display: block; }
    TabPane { padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("p", "pause", "pause"),
        Binding("slash", "filter", "filter"),
        Binding("escape", "unfilter", "all rows", show=False),
        Binding("s", "sort(1)", "sort"),
        Binding("S", "sort(-1)", "sort by the column before", show=False),
        Binding("r", "reverse", "reverse"),
        *(Binding(str(number), f"table('{name}')", name) for number, name in enumerate(TABLES, 1)),
    ]
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#connections RowsTable"

    def __init__(self, watcher: Watcher, *, watches: bool = True) -> None:
        super().__init__()
        # Nothing moves: each step of an animation would be sent over the terminal.
        self.animation_level = "none"
        self._watcher = watcher
        self._watches = watches
        self.is_paused = False

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield Static("", id="line", markup=False)
        yield Input(placeholder="filter", id="filter", compact=True)
        with TabbedContent(initial="connections"):
            for number, (name, (columns, wanted)) in enumerate(TABLES.items(), 1):
                with TabPane(f"{number} {name}", id=name):
                    yield RowsTable(columns, wanted)
        yield Static("", id="news", markup=False)

    def on_mount(self) -> None:
        """Begin to watch."""
        self.say()
        if self._watches:
            self.run_worker(self._watch(), exit_on_error=True)

    async def _watch(self) -> None:
        watching = asyncio.create_task(self._watcher.run())
        try:
            while not watching.done():
                await self._watcher.change()
                self.refresh_rows()
                # A look whose task has ended raises what it raised.
                await asyncio.sleep(0)
            await watching
        finally:
            watching.cancel()

    # What is shown

    @property
    def table(self) -> RowsTable:
        """The table that is shown."""
        name = self.query_one(TabbedContent).active or "connections"
        return self.query_one(f"#{name}", TabPane).query_one(RowsTable)

    def refresh_rows(self) -> None:
        """Show what the watcher knows, unless the console is paused."""
        if not self.is_paused:
            self.table.show_rows(filter(self._matches, self._watcher.domain.rows))
            self.say()

    def _matches(self, row: Row) -> bool:
        words = self.query_one("#filter", Input).value.lower().split()
        text = f"{row.domain} {row.process} {row.place} {row.connection} {row.role} {row.state} {' '.join(row.members)}".lower()
        return all(word in text for word in words)

    def say(self) -> None:
        """Show the line of numbers and keys, and the last event."""
        rows, table = self._watcher.domain.rows, self.table
        domains = len({row.domain for row in rows})
        processes = len({row.owner for row in rows})
        column, downwards = table.order
        name = TABLES[self.query_one(TabbedContent).active or "connections"][0][column].title
        state = "PAUSED" if self.is_paused else f"{domains} domains, {processes} processes, {len(rows)} connections"
        self._tell("#line", f"{state}; by {name} {'down' if downwards else 'up'}; q quit, p pause, / filter, s sort, r reverse")
        events = self._watcher.domain.events
        if events:
            self._tell("#news", printable(f"{events[-1].subject} {events[-1].text}"))

    def _tell(self, where: str, text: str) -> None:
        widget = self.query_one(where, Static)
        if str(widget.content) != text:
            widget.update(text)

    # Keys

    def action_pause(self) -> None:
        """Keep what is shown, or go on."""
        self.is_paused = not self.is_paused
        self.refresh_rows()
        self.say()

    def action_table(self, name: str) -> None:
        """Show another table."""
        self.query_one(TabbedContent).active = name
        self.table.focus()

    def action_sort(self, step: int) -> None:
        """Sort by the next column."""
        table = self.table
        count = len(TABLES[self.query_one(TabbedContent).active][0])
        table.order = ((table.order[0] + step) % count, table.order[1])
        self._reorder(table)

    def action_reverse(self) -> None:
        """Sort the other way around."""
        table = self.table
        table.order = (table.order[0], not table.order[1])
        self._reorder(table)

    def _reorder(self, table: RowsTable) -> None:
        table.sort_rows()
        self.say()

    def action_filter(self) -> None:
        """Ask for words; only rows with all of them are shown."""
        line = self.query_one("#filter", Input)
        line.add_class("shown")
        line.focus()

    def action_unfilter(self) -> None:
        """Show all rows."""
        line = self.query_one("#filter", Input)
        line.value = ""
        line.remove_class("shown")
        self.table.focus()

    def on_input_changed(self) -> None:
        """Show what matches."""
        self._show_matches()

    def on_input_submitted(self) -> None:
        """Go back to the table."""
        self.table.focus()

    def on_tabbed_content_tab_activated(self) -> None:
        """Fill the table that is shown now."""
        self._show_matches()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column that was chosen; again: the other way around."""
        table = self.table
        table.order = (event.column_index, event.column_index == table.order[0] and not table.order[1])
        self._reorder(table)

    def _show_matches(self) -> None:
        paused, self.is_paused = self.is_paused, False
        self.refresh_rows()
        self.is_paused = paused
        self.say()

    def on_resize(self, event: Resize) -> None:
        """Show the numbers of the new size."""
        self.say()

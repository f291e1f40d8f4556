"""Tables within a width: numbers stay whole at every width, columns are left out by rank and named, nothing is cut."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from experiments.cli import COMMANDS, command
from experiments.output.budget import Column, Extent, Table, fit, number, text_of
from experiments.output.printer import PIPED_WIDTH, Printer, View
from protocols.errors import UsageError

WIDTHS = (40, 60, 80, 120, 200)
ROWS = [["receiver-1", 4000000, 3.62512, True, None, "no words"], ["receiver-2", 17, 0.5, False, None, "a b"]]
COLUMNS = (
    Column("host", rank=0),
    Column("size", "bytes", rank=3),
    Column("time", "s", rank=1, form=".3f"),
    Column("ok", rank=2),
    Column("fault", rank=4),
    Column("reason", rank=9),
)
TABLE = Table(COLUMNS, ROWS, "hosts")


def printed(table: Table, width: int, view: View | None = None, encoding: str = "utf-8") -> list[str]:
    """Return the lines of a table at a width."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", newline="\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        Printer(view, Console(file=file, highlight=False)).table(table)
    file.flush()
    return raw.getvalue().decode(encoding).splitlines()


def test_a_head_has_the_unit_and_no_cell_repeats_it() -> None:
    assert printed(TABLE, 120) == [
        "hosts",
        "host        size [bytes]  time [s]   ok  reason",
        "─────────────────────────────────────────────────",
        "receiver-1       4000000     3.625  yes  no words",
        "receiver-2            17     0.500   no  a b",
    ]


def test_columns_that_do_not_fit_are_left_out_by_rank_and_named_in_one_line() -> None:
    lines = printed(TABLE, 30)
    assert lines[1].split() == ["host", "time", "[s]", "ok"]
    assert " ".join(lines[-3:]).startswith("left out at 30 characters: size, reason; --wide shows all")
    assert all(len(line) <= 30 for line in lines)


def test_of_labels_and_values_that_are_long_both_are_shown() -> None:
    table = Table(
        (Column("", rank=0), Column("simulator")), [["quiet after first request [s]", "3.173"], ["packets", "ack 2, " * 9]]
    )
    lines = printed(table, 40)
    assert lines[0].split() == ["simulator"]
    assert all(len(line) <= 40 for line in lines)


def test_a_column_that_says_nothing_is_left_out_unless_it_is_asked_for() -> None:
    assert "fault" not in "".join(printed(TABLE, 200))
    assert "fault" in "".join(printed(TABLE, 200, View(wide=True)))
    assert printed(TABLE, 200, View(columns=("fault", "host")))[1].split() == ["fault", "host"]


def test_wide_shows_every_column_in_one_line_each() -> None:
    lines = printed(TABLE, 40, View(wide=True))
    assert len(lines) == 3 + len(ROWS)
    assert "size [bytes]" in lines[1]
    assert "reason" in lines[1]


def test_named_columns_are_shown_in_their_order_whatever_the_width() -> None:
    lines = printed(TABLE, 20, View.of(columns="size, TIME ,host"))
    assert lines[-1].split() == ["17", "0.500", "receiver-2"]
    assert not any("left out" in line for line in lines)


def test_columns_of_one_rank_are_shown_together_or_not_at_all() -> None:
    pair = [Column("name", rank=0), Column("from", rank=1), Column("to", rank=1), Column("n", rank=2)]
    table = Table(pair, [["interval", 1.2345, 2.3456, 7]])
    assert printed(table, 80)[0].split() == ["name", "from", "to", "n"]
    assert printed(table, 20)[0].split() == ["name", "n"]


def test_labels_of_rows_are_shown_beside_named_columns() -> None:
    table = Table([Column("", rank=0), Column("norm"), Column("srm")], [["repairs", 1, 2]])
    assert printed(table, 80, View(columns=("srm",)))[-1].split() == ["repairs", "2"]


def test_names_longer_than_half_of_the_width_are_folded_and_never_cut() -> None:
    name = "".join(f"{place % 10}x" for place in range(30))
    table = Table([Column("host", rank=0), Column("bytes", rank=1)], [[name, 4000000]])
    for width in WIDTHS:
        lines = printed(table, width)[2:]
        assert lines[0].endswith("4000000")
        assert "".join(line.split()[0] for line in lines) == name
        assert all(len(line) <= width for line in lines)


def test_an_encoding_without_a_character_shows_it_as_an_escape_and_stays_aligned() -> None:
    table = Table([Column("name", rank=0), Column("bytes")], [["naïve-\U0001f600", 12], ["b", 4000000]])
    lines = printed(table, 80, encoding="ascii")
    assert lines[0] == "name                   bytes"
    assert lines[1] == "-" * len(lines[0])
    assert lines[2] == "na\\xefve-\\U0001f600       12"
    assert lines[3] == "b                    4000000"


def test_control_characters_and_markup_are_printed_as_they_are_named() -> None:
    (line,) = printed(Table([Column("name", rank=0)], [["[red]\x1b[2J"]]), 80)[2:]
    assert line == "[red]\\x1b[2J"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_command_is_wrapped_by_backslashes_and_stays_the_same_command(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "mcastlab run a.yaml --set 'topology={kind: star, receivers: 2}' --set protocol.rate=5Mbit && echo done it's"
    monkeypatch.setenv("COLUMNS", str(width))
    file = io.StringIO()
    Printer(console=Console(file=file, highlight=False)).command(f"  {text}")
    lines = file.getvalue().splitlines()
    assert all(line.startswith("  ") and len(line) <= max(width, 51) for line in lines)
    assert len(lines) > 1 or width > len(text) + 2
    # A shell removes a backslash with the end of its line.
    assert " ".join(file.getvalue().replace("\\\n", "").split()) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(4e6, "4000000"), (123456.7, "123457"), (0.000123456, "0.00012346"), (1.5, "1.5"), (float("inf"), "inf"), (True, "yes")],
)
def test_numbers_keep_the_digits_before_the_point(value: float, text: str) -> None:
    assert text_of(value, Column("x")) == text


def test_numbers_of_any_size_are_short() -> None:
    assert number(1.23456789e300) == "1.2346e+300"
    assert number(-99999.6) == "-100000"


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(-1e9, 1e9, allow_nan=False),
    st.lists(st.text("abcäß-.0123456789", min_size=1, max_size=12), max_size=5).map(" ".join),
)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=4)),
    ranks=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    width=st.sampled_from(WIDTHS),
)
def test_no_cell_of_any_table_is_cut(rows: list[list[object]], ranks: list[int], width: int) -> None:
    columns = [Column(f"c{place}", "s", rank) for place, rank in zip(range(len(rows[0])), ranks, strict=False)]
    table = Table(columns, rows)
    lines = printed(table, width)
    out = " ".join(lines)
    for place, column in enumerate(columns):
        if column.head.split()[0] not in " ".join(lines[:2]).split():
            continue
        for row in rows:
            for word in text_of(row[place], column).split():
                assert word in out.split()


@given(
    st.lists(
        st.builds(
            lambda a, b, r, t: Extent(a, a + b, r, t), st.integers(1, 30), st.integers(0, 30), st.integers(0, 5), st.booleans()
        ),
        max_size=12,
    ),
    st.sampled_from(WIDTHS),
)
def test_what_is_chosen_fits_unless_it_is_required(extents: list[Extent], width: int) -> None:
    chosen = fit(extents, width)
    assert {place for place, extent in enumerate(extents) if extent.rank == 0} <= set(chosen)
    assert all(extents[place].narrow <= size <= extents[place].full for place, size in chosen.items())
    if any(extents[place].rank for place in chosen):
        assert sum(chosen.values()) + 2 * (len(chosen) - 1) <= width
    assert fit(extents) == {place: extent.full for place, extent in enumerate(extents)}


def test_a_pipe_has_the_stated_width_and_columns_overrides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Printer(console=Console(file=io.StringIO())).width == PIPED_WIDTH
    for wrong in ("", "0", "wide", "-3"):
        monkeypatch.setenv("COLUMNS", wrong)
        assert Printer(console=Console(file=io.StringIO())).width == PIPED_WIDTH
    monkeypatch.setenv("COLUMNS", "61")
    assert Printer(console=Console(file=io.StringIO())).width == 61


def on_terminal(width: int, *arguments: str) -> list[str]:
    """Run a command on a terminal of this width and return what it shows, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")} | {"TERM": "xterm"}
    command = [sys.executable, "-c", "from experiments.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=env) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            # The other end was closed.
            pass
    os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).splitlines()


def test_a_terminal_is_filled_and_not_exceeded() -> None:
    lines = on_terminal(58, "run", "lan-file", "--set", "workload.size=100kB")
    assert max(map(len, lines)) <= 58
    rows = [line for line in lines if re.match(r"r\d ", line)]
    assert len(rows) == 8
    assert all(line.split()[1] == "yes" for line in rows)
    assert any("left out at 58 characters: objects, bytes" in line for line in lines)


def test_an_unknown_column_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(UsageError, match=r"--columns: value 'los' is not allowed; one of host, loss; did you mean 'loss'\?"):
        View.of(columns="host,los").check(["host", "", "loss"])
    with pytest.raises(UsageError, match="--columns: value ', ,' is not allowed; names with commas between"):
        View.of(columns=", ,")


def test_options_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="--wide: is not allowed beside --json"):
        View.of(wide=True, as_json=True)


def options(name: str) -> dict[str, set[str]]:
    """Return the options of a command, or of each of its subcommands."""
    whole = command(name)
    found = {f"{name} {sub}": each for sub, each in getattr(whole, "commands", {}).items()} or {name: whole}
    return {label: {text for parameter in each.params for text in parameter.opts} for label, each in found.items()}


EVERY = {label: found for name in COMMANDS for label, found in options(name).items()}


@pytest.mark.parametrize("command", EVERY)
def test_every_command_takes_json(command: str) -> None:
    assert "--json" in EVERY[command]


@pytest.mark.parametrize("command", [label for label, found in EVERY.items() if "--columns" in found])
def test_every_command_with_tables_has_the_same_options(command: str) -> None:
    assert EVERY[command] >= {"--wide", "--columns", "--brief"}


def test_nothing_else_draws_tables() -> None:
    root = Path(__file__).parents[3] / "experiments"
    drawing = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"import .*\brich\.table|rich\.table import", path.read_text())
    }
    assert drawing == {"output/printer.py"}

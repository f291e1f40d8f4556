"""Statistics as lines, as JSON and as a table of 80 columns."""

import json
from io import StringIO

from rich.console import Console

from experiments.output.printer import View, draw
from experiments.output.statistics_view import StatisticsView, line_of, tables_of
from protocols.registry import protocol
from protocols.snapshot import Measure, Rates, Snapshot, buffers, measures_by_name

MEASURES = measures_by_name(protocol("norm").measures)


def host(received: int, lost: int, objects: int = 1, name: str = "17") -> Snapshot:
    """Return a host that receives."""
    incomplete = [
        Snapshot("object", str(n), {"size": 4000, "bytes_received": 1000}, {"state": "incomplete"}) for n in range(objects)
    ]
    sender = Snapshot("sender", name, {"loss": 0.25, "grtt": 0.02}, {"activity": "active", "nack": "idle"}, incomplete)
    values = {"bytes_received": received, "data_lost": lost, "nacks_sent": 0, "rate": 1250.0}
    parts = (sender, *incomplete, *buffers({"objects": (objects, 8)}))
    return Snapshot("host", "h", {"packets_sent": 1}, parts=(Snapshot("session", "g", values, {"role": "receiver"}, parts),))


def test_lines_have_totals_and_rates_and_leave_out_what_is_zero() -> None:
    out = StringIO()
    view = StatisticsView(out, MEASURES)
    view.show(0.0, Snapshot("host", "h"))
    view.show(2.0, host(500_000, 4))
    view.show(3.0, host(1_500_000, 4, objects=5))
    assert out.getvalue().splitlines() == [
        "2s: bytes received 500 kB (2 Mbit/s), sender 17 active loss 25 %, object 0 incomplete 25%",
        "3s: bytes received 1.5 MB (8 Mbit/s), sender 17 active loss 25 %, object 0 incomplete 25%, object 1 incomplete 25%, "
        "object 2 incomplete 25%, 2 more objects",
    ]


def test_json_lines_hold_the_snapshot_and_the_rates() -> None:
    out = StringIO()
    view = StatisticsView(out, MEASURES, as_json=True)
    view.show(1.0, host(1000, 0))
    view.show(3.0, host(5000, 2))
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["time"], first["statistics"]) == ("statistics", 1.0, host(1000, 0).plain())
    assert "values" not in first["rates"]["parts"][0]
    assert second["rates"]["parts"][0]["values"] == {"bytes_received": 2000.0, "data_lost": 1.0, "nacks_sent": 0.0}


def test_names_from_the_network_can_not_steer_the_terminal() -> None:
    evil = host(1, 0, name="\x1b[2J\nrm")
    assert "\x1b" not in line_of(1.0, evil, Rates().add(1.0, evil))
    assert "\n" not in line_of(1.0, evil, Rates().add(1.0, evil))


def test_a_table_fits_80_columns_and_the_lines_of_the_terminal() -> None:
    snapshot = host(500_000, 4, objects=100)
    rates = Rates(MEASURES)
    rates.add(0.0, snapshot)
    tables = tables_of(snapshot, rates.add(1.0, snapshot), MEASURES, 24)
    out = StringIO()
    console = Console(file=out, width=80)
    for table in tables:
        console.print(draw(table, View(), 80, "utf-8")[0])
    lines = out.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert tables[0].title == "receiver g"
    assert ["bytes received", "0 bit/s", "500 kB"] in tables[0].rows
    assert ["rate", None, "10 kbit/s"] in tables[0].rows
    objects = next(table for table in tables if table.columns[0].name == "object")
    assert len(objects.rows) < 10
    assert objects.note == f"and {100 - len(objects.rows)} more"


def test_measures_that_nobody_knows_are_shown_all_the_same() -> None:
    told = Snapshot("session", "", {"things_done": 3, "weight": 2.5})
    table = tables_of(told, Rates().add(0.0, told), {"weight": Measure("weight", "w", "ratio", "gauge")})[0]
    assert table.rows == [["things done", None, "3"], ["weight", None, "250 %"]]

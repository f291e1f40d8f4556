"""Many receivers as few rows: ranges, the ten worst, and how many are alike."""

from typing import Any

import pytest

from experiments.output.budget import Table
from experiments.output.receivers import receiver_tables
from experiments.running.result import Row


def row(number: int, **values: Any) -> Row:
    """Return the row of a receiver that is complete at 1 s without loss, but for `values`."""
    usual: dict[str, Any] = {"objects": 1, "bytes": 1000, "equal": True, "proof": "sha256", "completed_at": 1.0, "loss": 0.0}
    counts = {"nacks_sent": 0, "nacks_suppressed": 0, "aborted": 0, "duplicates": 0}
    return Row(name=f"r{number}", **(usual | counts | values))


def column(table: Table, name: str) -> list[Any]:
    """Return the cells of a column."""
    place = [each.name for each in table.columns].index(name)
    return [cells[place] for cells in table.rows]


@pytest.mark.parametrize("count", [0, 1, 20])
def test_up_to_twenty_receivers_have_a_row_each(count: int) -> None:
    (table,) = receiver_tables([row(number) for number in range(count)])
    assert column(table, "receiver") == [f"r{number}" for number in range(count)]
    assert not table.title


def test_receivers_that_are_all_alike_are_one_row() -> None:
    (table,) = receiver_tables([row(number) for number in range(500)])
    assert table.title == "500 receivers, complete 500; alike: number of receivers with these values"
    assert (column(table, "receiver"), column(table, "alike")) == (["r0"], [500])


def test_the_worst_lack_content_then_were_complete_last_then_lost_most() -> None:
    failed = [row(number, equal=False, completed_at=None, objects=0) for number in range(3)]
    late = [row(number, completed_at=9.0 - number / 1000, loss=number / 1000) for number in range(3, 6)]
    crashed = [row(6, fault="crash", completed_at=0.5)]
    lossy = [row(number, loss=number / 100) for number in range(7, 30)]
    ranges, worst = receiver_tables([*lossy, *late, *failed, *crashed])
    assert ranges.title == "30 receivers, complete 27"
    assert column(worst, "receiver") == ["r0", "r6", "r3", "r4", "r5", "r29", "r28", "r27", "r26", "r25"]
    assert column(worst, "alike") == [3, *[1] * 9]
    assert worst.note == "and 18 receivers that are no worse"
    spread = {cells[0]: cells[1:] for cells in ranges.rows}
    assert spread["completed at [s]"] == ["0.500", "1.000", "8.997"]
    assert spread["loss [%]"] == ["0.00", "14.50", "29.00"]
    assert spread["bytes"] == ["1000", "1000", "1000"]


def test_rows_are_alike_when_they_are_printed_alike() -> None:
    (table,) = receiver_tables([row(number, completed_at=1.0 + number * 1e-6) for number in range(400)])
    assert column(table, "alike") == [400]

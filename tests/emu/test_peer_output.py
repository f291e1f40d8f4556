"""The last line of the output of a foreign program is found without reading all of it."""

import tracemalloc
from pathlib import Path

from emu.peers.output import last_line


def test_the_last_line_is_found_behind_any_output_without_reading_it(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("wb") as file:
        file.truncate(1 << 30)
        file.seek(0, 2)
        file.write(b"\nno such luck\n\n  \n")
    tracemalloc.start()
    assert last_line(output) == "no such luck"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_long_line_is_cut_and_no_output_is_told_as_such(tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.write_bytes(b"x" * 500 + b"\xff")
    assert last_line(output) == "x" * 200
    output.write_bytes(b" \n")
    assert last_line(output) == "it printed nothing"

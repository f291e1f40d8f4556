"""Labels of axes and metrics."""

from pathlib import Path

from experiments.report.labels import head_units
from experiments.sweep.spec.sweep_file import load_sweep
from tests.experiments.sweep.files import write_sweep


def test_heads_of_tables_have_the_unit_in_which_the_values_of_an_axis_are_stored(tmp_path: Path) -> None:
    axes = {
        "topology.link.delay": ["1ms", "1s"],
        "speed": {"key": "protocol.rate", "from": "1Mbit", "to": "2Mbit"},
        "workload.size": [1000, 2000],
        "loss": {"key": "topology.link.down.loss", "values": ["1%", "5%"]},
        "grtt": {"key": "protocol.grtt", "values": ["10ms", "auto"]},
    }
    units = head_units(load_sweep(write_sweep(tmp_path, axes=axes)))
    assert units["topology.link.delay"] == units["topology__link__delay"] == "s"
    assert (units["speed"], units["workload.size"], units["completion_time"]) == ("bit/s", "B", "s")
    # Fractions have no unit, and text has its own.
    assert not {"loss", "grtt"} & units.keys()

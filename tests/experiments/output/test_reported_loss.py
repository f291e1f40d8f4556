"""The tables of a run say where the loss that receivers count is not that of the links."""

import pytest

from experiments.cli import invoke

RUN = ("run", "lan-file", "--set", "workload.size=200kB", "--set", "topology.link.down.loss=5%")
NOTE = "loss is as the receivers count it, too low here"


@pytest.mark.parametrize(("more", "is_told"), [((), False), (("--set", "topology.link.down.duplicate=20%"), True)])
def test_a_loss_that_duplicates_hide_is_told(more: tuple[str, ...], is_told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*RUN, *more]) == 0
    assert (NOTE in " ".join(capsys.readouterr().out.split())) == is_told

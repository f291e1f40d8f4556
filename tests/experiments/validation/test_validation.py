"""A sample of reference values measured on the real machines, and the criterion that judges them."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.cli import invoke
from experiments.validation import families
from experiments.validation.descriptions import DESCRIPTIONS
from experiments.validation.references import (
    REFERENCES,
    Measured,
    Reference,
    ReferenceCheck,
    check_values,
    mean_of,
    ratio_of,
    read_references,
)
from experiments.validation.validation_page import validation_page
from protocols.errors import UsageError
from tests.experiments.validation import feedback_counts
from tests.tidy.tree import ROOT

ENTRIES = {reference.id: reference for reference in read_references()}

SPREAD = {
    "nack.EN.mcast.G10.K4": 0.15,
    "nack.EN.mcast.G1000.K4": 0.02,
    "nack.EN.unicast_echo.G100.K6": 0.05,
    "nack.first.G100.K6": 0.05,
    "nack.EN.subset.G100.K4.n5": 0.15,
    "cc.feedback.G100.d1.rtt0.1": 0.1,
    "cc.feedback.G1000.d0.5.rtt0.1": 0.05,
    "tfrc.s512.R0.01.p0.01": 1.0,
    "wali.a": 1.0,
    "norm.qrate.12345": 1.0,
    "arq.EM.R10.p0.1": 0.3,
    "arq.EM.R1000.p0.01": 0.02,
    "arq.rounds.R1.k64.p0.01": 0.1,
    "goodput.arq.R100.p0.05": 0.1,
    "fec.EMinf.k20.R100.p0.01": 0.1,
    "fec.EMinf.k7.R10.p0.25": 0.1,
    "fec.EMinf.k7.a1.R10.p0.05": 0.2,
    "fec.shared.k20.R100.ps0.05.pi0.05": 0.05,
    "fec.first_block.k7.n9.R10.p0.1": 0.2,
    "fec.q.k7.n8.p0.1": 0.2,
    "fec.layered.k7.n8.R10.p0.1": 0.2,
    "tkp.counts.R10.p0.1": 0.05,
    "tkp.us.R10.p0.05": 0.04,
    "tkp.unit.R1.p0.1": 0.1,
    "srm.star.G25.C2_5": 0.1,
    "srm.star.G100.C2_10": 0.05,
    "implosion.G100.Q50": 1.0,
    "nack.var.G10.T4": 0.1,
    "tcp.reno.0.01": 1.0,
    "tcp.reno.0.001": 0.3,
    "tcp.cubic.0.001": 0.3,
    "tcp.capacity.reno": 0.2,
    "tcp.capacity.cubic": 0.2,
    "tcp.share.reno": 0.5,
}
"""Reference values, and the effort spent on each: 1 is what `make validate` spends."""


@pytest.mark.parametrize("id", SPREAD)
def test_machines_agree_with_theory(id: str) -> None:
    (checks,) = families.validate([ENTRIES[id]], SPREAD[id])
    assert checks
    for check in checks:
        assert check.good, f"{check.name}: {check.measured} (SE {check.error}), theory says {check.reference}"


def reference(tolerance: float, value: float = 10.0) -> Reference:
    """Return a reference with a relative tolerance."""
    return Reference("x", "mm1", {}, {"value": value}, {"type": "stat", "rel": tolerance})


@pytest.mark.parametrize(
    ("measured", "good"),
    [
        (Measured(10.4, 0.0), True),
        (Measured(10.6, 0.0), False),
        (Measured(10.6, 0.2), True),
        (Measured(9.1, 0.2), False),
    ],
)
def test_a_value_may_differ_by_the_tolerance_or_four_standard_errors(measured: Measured, good: bool) -> None:
    (check,) = check_values(reference(0.05), {"value": measured})
    assert check.good is good


def test_verdicts_on_numpy_numbers_are_json_serialisable() -> None:
    (check,) = check_values(reference(0.05), {"value": Measured(np.float64(10.4), np.float64(0.1))})
    assert json.loads(json.dumps(asdict(check)))["good"] is True


def test_standard_errors_are_those_of_means() -> None:
    found = mean_of([1.0, 2.0, 3.0, 4.0])
    assert found.value == 2.5
    assert found.error == pytest.approx((5 / 3 / 4) ** 0.5)
    assert ratio_of(0, 100) == Measured(0.0, 0.01)
    assert ratio_of(50, 100) == Measured(0.5, 0.05)


def test_a_wrong_machine_is_detected() -> None:
    wrong = Reference("arq.EM.R10.p0.1", "arq_nofec", {"R": 10, "p": 0.12}, {"value": 1.758}, {"type": "stat", "rel": 0.02})
    (checks,) = families.validate([wrong], 0.3)
    assert not all(check.good for check in checks)


def test_every_measured_family_has_references() -> None:
    assert set(families.families()) <= {reference.family for reference in ENTRIES.values()}


def test_every_measured_family_is_described() -> None:
    assert set(DESCRIPTIONS) == set(families.families())


def test_the_page_of_results_has_every_measured_reference_and_family() -> None:
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (.*)$", page, re.M)) == set(families.families())
    measured = {reference.id for reference in families.select(ENTRIES.values()) if reference.values}
    assert set(re.findall(r"^\| `(.*?)` \|", page, re.M)) == measured
    assert all(text in page for text in DESCRIPTIONS.values())


def test_an_unknown_family_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"'nonsense' is not allowed; one of .*arq_nofec"):
        families.select(ENTRIES.values(), ["nonsense"])


def test_the_command_writes_json_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "validation.md"
    assert invoke(["validate", "--family", "implosion_drop", "--json", "--out", str(out)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["good"] for row in rows} == {True}
    text = out.read_text(encoding="utf-8")
    assert "4 of 4 values agree" in text
    assert "| `implosion.G100.Q50` | drops | 49 | 49 |" in text
    assert invoke(["validate", "--reference", str(tmp_path / "none.json")]) == 2
    assert invoke(["validate", "--effort", "0"]) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "it is empty"),
        ("[" * 100_000, "nested too deep"),
        ('[{"id": "a"}]', "a row has no 'value'"),
        ('[{"id": "a", "family": "mm1", "params": {}, "value": 1, "tolerance": {"type": "rel"}}]', "a row has no 'value'"),
        ("[1]", "'int' object is not subscriptable"),
    ],
)
def test_a_file_without_references_is_refused_in_one_line(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    assert invoke(["validate", "--reference", str(path)]) == 2
    expected = f"mcastlab: --reference: value {str(path)!r} is not allowed; a file of reference values ({why})\n"
    assert capsys.readouterr().err == expected


def test_the_references_are_not_overwritten_by_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(REFERENCES.read_bytes())
    assert invoke(["validate", "--family", "implosion_drop", "--reference", str(path), "--out", str(path)]) == 2
    assert "--out: value " in (error := capsys.readouterr().err)
    assert "it is a file that this command reads" in error
    assert path.read_bytes() == REFERENCES.read_bytes()


QUICK = ["validate", "--effort", "0.05", "--family", "mm1k", "--family", "implosion_drop"]


def test_parallel_workers_measure_the_same_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*QUICK, "--jobs", "1"]) == invoke([*QUICK, "--jobs", "3"]) == 0
    output = capsys.readouterr().out
    assert output[: len(output) // 2] == output[len(output) // 2 :]


def test_an_interrupted_validation_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, part = tmp_path / "page.md", tmp_path / "page.md.part"
    long = [*QUICK, "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "check_values", _interrupting(after=5))
        assert invoke([*long, "--jobs", "1"]) == 130
    assert not out.exists()
    assert len(part.read_text().splitlines()) == 1 + 5
    capsys.readouterr()
    assert invoke(long) == 2
    assert "page.md.part is left from an interrupted run; continue with --resume" in capsys.readouterr().err
    assert invoke([*long, "--resume", "--effort", "0.1"]) == 2
    assert '"effort": 0.05' in capsys.readouterr().err
    # The last line was cut off; of the others the first is recognised by a value that no measurement gives.
    lines = part.read_text().splitlines(keepends=True)
    part.write_text(lines[0] + "{}\n")
    assert invoke([*long, "--resume"]) == 2
    assert "page.md.part is damaged" in capsys.readouterr().err
    lines[1] = re.sub(r'"measured": [^,]*', '"measured": 0.125', lines[1])
    part.write_text("".join(lines)[:-9])
    assert invoke([*long, "--resume"]) == 0
    assert " 0.125 " in capsys.readouterr().out
    assert not part.exists()
    assert re.search(r"\b(\d+) of \1 values agree", out.read_text())


def test_a_page_that_cannot_be_written_is_refused_before_the_measurements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out in (tmp_path, tmp_path / "none" / "page.md"):
        assert invoke([*QUICK, "--out", str(out)]) == 2
        output = capsys.readouterr()
        assert f"--out: value '{out}' is not allowed; it can't be written" in output.err
        assert not output.out
    assert not list(tmp_path.iterdir())


def _interrupting(after: int) -> Callable[..., list[ReferenceCheck]]:
    """Judge this many entries, then raise KeyboardInterrupt."""
    left = iter(range(after))

    def judging(*arguments: Any) -> list[ReferenceCheck]:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return check_values(*arguments)

    return judging


def test_failed_checks_are_highlighted() -> None:
    assert "**differs**" in validation_page(check_values(reference(0.01), {"value": Measured(11.0)}), 1.0)


def test_the_feedback_counts_are_those_of_the_script_that_integrates_them() -> None:
    for entry in feedback_counts.entries():
        assert ENTRIES[entry["id"]].values["value"] == pytest.approx(entry["value"], rel=1e-6)

"""Claims are judged by what runs measure, and a claim that does not hold says so."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from experiments.claims import claim as reading
from experiments.claims.claim import FOLDER, Check, Claim, claim_files, read_claims
from experiments.claims.claims_page import with_section
from experiments.claims.expressions import Formula
from experiments.claims.judge import judge
from experiments.cli import invoke
from experiments.scenario.cases import case_of
from experiments.scenario.scenario import read
from protocols.errors import ConfigError
from tests.tidy.tree import ROOT

SAMPLE = ("D06", "D08", "D12", "D13", "D15", "D22")
"""Claims that take little time; `make claims` judges all."""
TWO_LOSSES = """
name: two
topology: {kind: star, receivers: 2, link: {rate: 100Mbit, delay: 1ms}}
protocol: {name: distributor, segment: 1400, heartbeat: 300ms}
workload:
  - {kind: publish, hosts: [sender], to: "/a", size: 200, rate: 100/s, count: 10}
  - {kind: subscribe, hosts: [r], to: ["/a"]}
duration: 10s
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put claims of a document 900 into a folder of their own."""
    lines = ['seed: "900"', "title: A document", "about: It says things.", "claims:"]
    for name, wanted, more in ROWS:
        check = f"{{what: messages, {wanted}, measure: run.metrics.messages.delivered}}"
        lines.append(f"  {name}: {{claim: c, criterion: d, scenario: two, {more}checks: [{check}]}}")
    text = "\n".join(lines)
    (tmp_path / "claims" / "900").mkdir(parents=True)
    (tmp_path / "claims" / "900.yaml").write_text(text)
    (tmp_path / "claims" / "900" / "two.yaml").write_text(TWO_LOSSES)
    monkeypatch.setattr(reading, "FOLDER", tmp_path / "claims")
    monkeypatch.setattr("experiments.claims.judge.FOLDER", tmp_path / "claims")
    return tmp_path


ROWS = (
    ("X1", "near: 20", ""),
    ("X2", "least: 21", "reason: there are ten of them, "),
    ("X3", "most: 30", "caveat: it says so, "),
)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_claim_of_the_distributor_holds(name: str) -> None:
    (found,) = judge(read_claims("003"), [name], "sim")
    assert found.verdict == "holds", found


@pytest.mark.parametrize("name", ["F01", "F20", "F21", "F25", "F28"])
def test_a_claim_of_the_thesis_holds(name: str) -> None:
    (found,) = judge(read_claims("000"), [name], "sim")
    assert found.verdict == "holds", found


def test_a_claim_is_measured_where_it_is_shown_and_not_judged(small: Path) -> None:
    claims = read_claims("900")
    shown = claims.claims["X2"].model_copy(update={"worlds": ("emu",), "shown": ("sim",), "why_not": "it is too slow"})
    (found,) = judge(claims.model_copy(update={"claims": {"X2": shown}}), ["X2"], "sim")
    assert (found.verdict, found.measured) == ("caveat", 20.0)
    assert found.reason == "not judged in this world: it is too slow"


def test_a_claim_needs_checks_in_each_of_its_worlds() -> None:
    claim = read_claims("000").claims["F17"]
    with pytest.raises(ValueError, match="no checks for world 'emu'"):
        Claim.model_validate({**claim.model_dump(), "checks": (), "emu_checks": ()})


def test_every_scenario_of_a_claim_loads_and_every_scenario_is_one_of_a_claim() -> None:
    for seed in claim_files():
        claims = read_claims(seed).claims.values()
        wanted = {claim.scenario_on(world) for claim in claims for world in (*claim.worlds, *claim.shown)}
        assert wanted == {path.stem for path in (FOLDER / seed).glob("*.yaml")}
        for name in wanted:
            _load(claims, FOLDER / seed / f"{name}.yaml")


def _load(claims: Iterable[Claim], path: Path) -> None:
    """Load all cases of a scenario, but those that are refused as a claim says."""
    data = read(path)
    assert case_of(data, "", path)
    measured = [check.measure for claim in claims if claim.scenario == path.stem for check in claim.checks if check.near == 1]
    for name in data.get("compare", ()):
        if f"{name}.refused" in measured:
            with pytest.raises(ConfigError, match=r"is not allowed|only subscriptions have wildcards"):
                case_of(data, name, path)
        else:
            assert case_of(data, name, path)


def test_all_claims_of_both_documents_are_there() -> None:
    assert list(read_claims("003").claims) == [f"D{number:02}" for number in range(1, 23)]
    assert list(read_claims("000").claims) == [f"F{number:02}" for number in range(1, 30)]


IN_BOTH = ["F01", "F06", "F07", *(f"F{number}" for number in (14, 15, 16, 17, 18, *range(22, 30)))]


def test_what_follows_from_the_protocols_of_fjm2_is_judged_in_both_worlds_and_the_rest_says_why_not() -> None:
    claims = read_claims("000").claims
    assert [name for name, claim in claims.items() if claim.worlds == ("sim", "emu")] == IN_BOTH
    assert all(claim.why_not for name, claim in claims.items() if name not in IN_BOTH)


def test_claims_that_do_not_hold_say_so(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["claims", "900", "--jobs", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["of"]) == (1, 3)
    assert [row["verdict"] for row in found["claims"]] == ["holds", "fails", "caveat"]
    first = found["claims"][0]
    assert (first["measured"], first["wanted"], first["backend"]) == (20.0, "messages: 20", "sim")
    assert first["command"] == "mcastlab claims 900 --only X1"
    assert found["claims"][1]["reason"] == "there are ten of them"


def test_a_claim_that_is_not_for_this_world_has_no_measurement(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["claims", "900", "--only", "X1", "--on", "emu", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["claims"]
    assert (row["verdict"], row["measured"]) == ("caveat", None)


def test_the_section_is_put_between_its_markers_and_an_interrupted_run_continues(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = small / "seeds.md"
    page.write_text("# Page\n\n<!-- claims 900 -->\nstale words\n<!-- end of claims 900 -->\n\nafter\n")
    (small / "seeds.md.part").write_text("")
    assert invoke(["claims", "900", "--only", "X1", "--jobs", "1", "--out", str(page), "--resume"]) == 0
    text = page.read_text()
    assert text.startswith("# Page\n")
    assert text.endswith("<!-- end of claims 900 -->\n\nafter\n")
    assert "stale words" not in text
    assert "| X1 | c | d | messages: 20 (wanted: 20) | 0 | holds |" in text
    assert not (small / "seeds.md.part").exists()


def test_a_run_that_was_refused_leaves_nothing_to_resume(small: Path) -> None:
    page = small / "seeds.md"
    (small / "seeds.md.part").write_text('{"claims": "900", "code": "older"}\n')
    assert invoke(["claims", "900", "--only", "X1", "--jobs", "1", "--out", str(page)]) == 0
    assert "holds" in page.read_text()


def test_a_page_that_is_no_text_is_refused_before_anything_is_measured(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = small / "page.md"
    page.write_bytes(b"a\xff")
    monkeypatch.setattr("experiments.claims.judge._measure", lambda *args: pytest.fail("it was measured"))
    assert invoke(["claims", "900", "--jobs", "1", "--out", str(page)]) == 2
    assert f"--out: value {str(page)!r} is not allowed; it is not UTF-8 text (byte 1)\n" in capsys.readouterr().err
    assert page.read_bytes() == b"a\xff"
    assert not list(small.glob("*.part"))


def test_verdicts_of_an_interrupted_run_are_not_measured_again(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = small / "seeds.md"
    lines: list[str] = []

    def stop(self: Any, text: str) -> None:
        lines.append(text)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("experiments.output.result_log.ResultLog.finish", stop)
        assert invoke(["claims", "900", "--only", "X1", "--jobs", "1", "--out", str(page)]) == 130
    monkeypatch.setattr("experiments.claims.judge._measure", lambda *args: pytest.fail("it was measured again"))
    assert invoke(["claims", "900", "--only", "X1", "--jobs", "1", "--out", str(page), "--resume"]) == 0
    assert "holds" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["claims", "999"], "SEED: value '999' is not allowed; one of 000, 003"),
        (["claims", "003", "--only", "D99"], "--only: value 'D99' is not allowed; one of D01, D02"),
        (["claims", "003", "--on", "moon"], "--on: value 'moon' is not allowed; one of sim, emu"),
        (["claims", "003", "--resume"], "--resume: nothing to go on with without --out"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_new_page_gets_head_and_markers() -> None:
    text = with_section("", "900", "words")
    assert text.startswith("# Claims of the seed documents\n")
    assert text.endswith("<!-- claims 900 -->\n\nwords\n\n<!-- end of claims 900 -->\n")


def test_the_page_has_a_verdict_for_each_claim_of_today() -> None:
    text = (ROOT / "docs" / "seeds.md").read_text()
    for seed in claim_files():
        section = text.partition(f"<!-- claims {seed} -->")[2].partition(f"<!-- end of claims {seed} -->")[0]
        rows = [line.split(" | ")[:3] for line in section.splitlines() if re.match(r"\| [A-Z]\d", line)]
        assert [(row[0].strip("| "), row[1], row[2]) for row in rows] == [
            (name, claim.claim, claim.criterion) for name, claim in read_claims(seed).claims.items()
        ]


NAMES = {"run": {"rows": [{"n": 1, "name": "a"}, {"n": 3, "name": "b"}], "mean": 2.0}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("run.mean * 2 - 1", 3),
        ("sum(column(run.rows, 'n')) / len(run.rows)", 2),
        ("row(run.rows, 'name', 'b').n ** 2", 9),
        ("-run.rows[0].n", -1),
        ("(run.mean > 1) + (run.mean == 5)", 1),
    ],
)
def test_formulas_compute(text: str, value: float) -> None:
    assert Formula(text).value(NAMES) == value


NOT_ALLOWED = (
    *("__import__('os')", "run.__class__()", "[x for x in run]", "lambda: 1", "open('x')", "run.mean.real()", "1 +"),
    *("f'{run}'", "2 @ 3"),
)
NO_VALUE = ("run.absent", "absent", "run.rows[7]", "1 / 0", "row(run.rows, 'name', 'c')", "run.mean.real")


@pytest.mark.parametrize("text", NOT_ALLOWED)
def test_formulas_allow_arithmetic_only(text: str) -> None:
    with pytest.raises(ConfigError, match="formula"):
        Formula(text)


@pytest.mark.parametrize("text", NO_VALUE)
def test_a_formula_without_a_value_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="has no value"):
        Formula(text).value(NAMES)


def test_criteria_judge_means_with_their_standard_errors() -> None:
    near = Check(what="w", measure="1", near=10, within=0.01)
    assert near.allows(10.05, 0.0)
    assert not near.allows(10.5, 0.0)
    assert near.allows(10.5, 0.2)
    exact = Check(what="w", measure="1", near=0)
    assert not exact.allows(0.2, 0.2), "an exact value is not loosened by chance"
    limits = Check(what="w", measure="1", least=1, most=3)
    assert limits.allows(1, 0.0)
    assert not limits.allows(3.1, 5.0)
    assert limits.is_close(1.1, 0.1)
    assert not limits.is_close(2.0, 0.1)
    with pytest.raises(ValueError, match="near"):
        Check(what="w", measure="1")

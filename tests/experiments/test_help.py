"""The help of commands, their man pages, and how fast the command starts."""

import json
import re
import resource
import shutil
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import typer

from experiments.cli import COMMANDS, EXIT_CODES, command, invoke

SLOW_MODULES = {"asyncio", "experiments.running", "mininet", "networkx", "numpy", "pydantic", "simpy", "yaml"}


def leaves() -> list[tuple[list[str], Any]]:
    """Return every command with its name, those of groups included."""
    found = []
    for name in COMMANDS:
        inner = getattr(command(name), "commands", {"": command(name)})
        found += [([name, key] if key else [name], item) for key, item in inner.items()]
    return found


def test_help_shows_no_type_beside_flags(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], *(words for words, _ in leaves())):
        assert invoke([*words, "--help"]) == 0
        out = capsys.readouterr().out
        assert "--help" in out
        assert "<bool>" not in out, words


def test_options_with_values_keep_what_stands_for_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "--help"]) == 0
    assert re.search(r"--set +key.path=value", capsys.readouterr().out)


def literals(hint: Any) -> tuple[Any, ...]:
    """Return the values of a Literal anywhere within a type."""
    return get_args(hint) if get_origin(hint) is Literal else sum(map(literals, get_args(hint)), ())


def test_an_option_with_a_choice_of_values_shows_them_in_place_of_its_value() -> None:
    shown = {}
    for words, item in leaves():
        metavars = {param.name: param.metavar for param in item.params}
        hints = get_type_hints(item.callback)
        for name in metavars.keys() & hints.keys():
            if values := literals(hints[name]):
                assert metavars[name] == "|".join(values), (words, name)
                shown[words[0], name] = metavars[name]
    assert shown["sub", "order"] == "none|fifo"
    assert shown["pub", "body"] == "text|bytes|map|object"
    channel_fit = next(item for words, item in leaves() if words == ["channel", "fit"])
    forms = import_module("experiments.commands.channel").FORMS
    assert next(param.metavar for param in channel_fit.params if param.name == "form") == "|".join(forms)


def test_help_names_an_argument_that_may_be_left_out_in_one_pair_of_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    for words, _ in leaves():
        assert invoke([*words, "--help"]) == 0
        assert not re.search(r"\[\[[A-Z]+\]\]", capsys.readouterr().out), words


def test_an_option_has_one_default() -> None:
    for words, item in leaves():
        for param in item.params:
            if "(default:" in (getattr(param, "help", "") or ""):
                assert not param.show_default or param.default in (None, "", []), (words, param.name)


def test_the_usage_of_a_command_has_dots_once_after_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    for words, ends in (("sub", "sub [OPTIONS] {TOPIC}..."), ("pub", "pub [OPTIONS] [TOPIC [FILE]...]")):
        assert invoke([words, "--help"]) == 0
        assert re.search(rf"{re.escape(ends)} *\n", capsys.readouterr().out)


def test_paragraphs_of_help_are_filled_to_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert invoke(["run", "--help"]) == 0
    about = capsys.readouterr().out.partition("─ Arguments")[0]
    paragraphs = re.findall(r"(?:^ \S.*\n)+", about, re.M)
    assert any("Exit code 0" in paragraph for paragraph in paragraphs)
    for paragraph in paragraphs:
        lines = [line.strip() for line in paragraph.splitlines()]
        for line, following in pairwise(lines):
            # The next word did not fit.
            assert len(line) + 1 + len(following.split()[0]) > 78, line


def test_printing_the_version_imports_nothing_slow_and_takes_little_time() -> None:
    script = "import sys; from experiments.cli import invoke; code = invoke(['--version']); print(code, *sys.modules)"
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert SLOW_MODULES.isdisjoint(done.stdout.split())
    # Time of the processor, of the quickest run: other programs do not count.
    assert min(times) < 0.3


def test_a_man_page_for_each_command_names_all_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["man", str(tmp_path), "--json"]) == 0
    written = {Path(path) for path in json.loads(capsys.readouterr().out)["written"]}
    assert written == set(tmp_path.iterdir())
    main = (tmp_path / "mcastlab.1").read_text().replace("\\-", "-")
    for words, item in leaves():
        name = "-".join(["mcastlab", *words])
        text = (tmp_path / f"{name}.1").read_text().replace("\\-", "-")
        assert name in main
        for param in item.get_params(typer.Context(item)):
            assert param.hidden or all(option in text for option in param.opts if option.startswith("-")), (words, param.opts)
        assert all(f"\n{code}\n" in text for code in EXIT_CODES)


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man: sudo apt-get install man-db")
def test_man_formats_the_pages_without_a_warning(tmp_path: Path) -> None:
    assert invoke(["man", str(tmp_path)]) == 0
    for name in ("mcastlab.1", "mcastlab-run.1", "mcastlab-channel-fit.1"):
        done = subprocess.run(["man", "--warnings", "-l", str(tmp_path / name)], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert done.stdout.startswith(name.partition(".")[0].upper())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert invoke(["man", str(tmp_path / "file" / "man1")]) == 2
    assert "DIR: value " in capsys.readouterr().err

"""Write the help of commands as man pages, in the macros of man(7)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import typer

__all__ = ["man_pages"]

MARKUP = re.compile(r"\[/?(?:bold|dim|italic|cyan|yellow|green|red)\]")
"""Marks of rich in help texts."""


def man_pages(commands: Mapping[str, Any], about: str, exit_codes: Mapping[int, str], release: str) -> dict[str, str]:
    """Return the pages by file name: one of `mcastlab` itself, and one for each command and each command of a group.

    `commands` are objects of click by name, `about` is a sentence about the program, `release` its version.
    """
    every = {name: page for key, item in commands.items() for name, page in _with_subcommands(f"mcastlab {key}", item)}
    codes = "".join(f".TP\n{code}\n{_text(meaning)}\n" for code, meaning in exit_codes.items())
    status = _section("EXIT STATUS") + codes
    pages = {
        name: _page(name, _first_sentence(item.help), _usage(name, item), "".join(_body(item)) + status)
        for name, item in every.items()
    }
    listed = "".join(f".TP\n{_bold(_file(name))}(1)\n{_text(_first_sentence(item.help))}.\n" for name, item in every.items())
    main = f"{_section('DESCRIPTION')}{_text(about)}\n{_section('COMMANDS')}{listed}{status}"
    pages["mcastlab"] = _page("mcastlab", "a laboratory for reliable multicast", "\\fICOMMAND\\fR [\\fIOPTIONS\\fR]", main)
    return {f"{_file(name)}.1": text.replace("@release@", _text(release)) for name, text in pages.items()}


def _with_subcommands(name: str, item: Any) -> Iterator[tuple[str, Any]]:
    """Yield a command, or the commands of a group."""
    inner = getattr(item, "commands", None)
    if inner is None:
        yield name, item
        return
    for key, command in inner.items():
        yield from _with_subcommands(f"{name} {key}", command)


def _page(name: str, about: str, usage: str, body: str) -> str:
    title = f'.TH {_file(name).upper()} 1 "" "mcastlab @release@" "mcastlab"\n'
    head = f"{_section('NAME')}{_file(name, escaped=True)} \\- {_text(about)}\n{_section('SYNOPSIS')}{_bold(name)} {usage}\n"
    return title + head + body


def _usage(name: str, item: Any) -> str:
    found = [param for param in _params(name, item) if param.param_type_name == "argument"]
    several = [param.nargs == -1 and not _metavar(param).endswith("...") for param in found]
    arguments = [f"\\fI{_text(_metavar(param))}\\fR{' ...' * dots}" for param, dots in zip(found, several, strict=True)]
    shown = [text if param.required else f"[{text}]" for text, param in zip(arguments, found, strict=True)]
    return " ".join(["[\\fIOPTIONS\\fR]", *shown])


def _body(item: Any) -> Iterator[str]:
    """Yield the description, the arguments and the options of a command."""
    yield _section("DESCRIPTION")
    yield ".PP\n".join(f"{_text(' '.join(part.split()))}\n" for part in re.split(r"\n\s*\n", item.help or ""))
    params = _params("", item)
    for title, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        chosen = [param for param in params if param.param_type_name == kind]
        if chosen:
            yield _section(title)
            yield from map(_param, chosen)


def _param(param: Any) -> str:
    names = [] if param.param_type_name == "argument" else [_bold(name) for name in (*param.opts, *param.secondary_opts)]
    value = _metavar(param)
    head = " ".join([", ".join(names), f"\\fI{_text(value)}\\fR" if value else ""]).strip()
    about = " ".join((param.help or "").split())
    if param.show_default and param.default not in (None, False, "", ()):
        about += f" [default: {param.default}]"
    return f".TP\n{head}\n{_text(about)}\n"


def _params(name: str, item: Any) -> list[Any]:
    return [param for param in item.get_params(typer.Context(item, info_name=name)) if not getattr(param, "hidden", False)]


def _metavar(param: Any) -> str:
    """Return what stands for the value of an option or argument; empty for a flag."""
    if param.metavar is not None:
        return str(param.metavar)
    return "" if getattr(param, "is_flag", False) else str(param.type.name).upper()


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".")


def _section(title: str) -> str:
    return f".SH {title}\n"


def _file(name: str, *, escaped: bool = False) -> str:
    """Return the name of a page, such as mcastlab-run."""
    return name.replace(" ", "\\-" if escaped else "-")


def _bold(text: str) -> str:
    return f"\\fB{_text(text)}\\fR"


def _text(text: str) -> str:
    """Return plain text for the formatter: without markup, with hyphens that can be copied, with no control line."""
    plain = MARKUP.sub("", text).replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", plain, flags=re.M)

"""Options that name a file to be written, which are checked before the work begins."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from protocols.errors import UsageError

__all__ = ["check_outputs"]

OUTPUTS = ("out", "svg", "html", "csv", "trace", "mininet", "core", "kathara")
"""Options with a file to be written, or a folder for files."""
MAKE_FOLDERS = ("core", "mininet", "trace")
"""Options whose command creates the folder of the file if it is missing."""
INPUTS = ("reference", "run")
"""Options with a file, or a folder of recordings, that is read."""
RECORDED = (".json", ".jsonl", ".parquet", ".pcap", ".pcapng", ".yaml")
"""Names of files in the folder of a run or a sweep that other commands read end like this."""


def check_outputs(arguments: Mapping[str, Any], options: Mapping[str, Any], folders: frozenset[str]) -> None:
    """Raise UsageError for an output that can't be written, that another output is, or that the command reads.

    `folders` are the options that name a folder. A recording in a folder that is read counts as read, too.
    """
    inputs = [Path(each) for value in arguments.values() for each in (value if isinstance(value, list) else [value]) if each]
    inputs += [options[name] for name in INPUTS if isinstance(options.get(name), Path)]
    outputs = {name: options[name] for name in OUTPUTS if isinstance(options.get(name), Path)}
    named: dict[Path, str] = {}
    for name, output in outputs.items():
        refused = f"--{name}: value {str(output)!r} is not allowed; "
        other = named.setdefault(output.absolute(), name)
        if other != name:
            raise UsageError(f"{refused}--{other} writes there")
        problem = _clash(output, inputs) or _problem(output, name in folders, name in (*MAKE_FOLDERS, *folders))
        if problem:
            raise UsageError(f"{refused}{problem}")


def _clash(output: Path, inputs: list[Path]) -> str:
    """Return which input an output is; "" for none."""
    for source in inputs if output.is_file() else ():
        if source.is_file() and source.samefile(output):
            return "it is a file that this command reads"
        if source.is_dir() and output.suffix in RECORDED and output.resolve().is_relative_to(source.resolve()):
            return f"it is a recording of {source}"
    return ""


def _problem(path: Path, is_folder: bool, makes_folders: bool) -> str:
    """Return why an output can't be written at `path`; "" if it can, as far as is known before."""
    try:
        reason = _reason(path, is_folder, makes_folders)
    except OSError as error:
        reason = str(error.strerror)
    return reason and f"it can't be written ({reason})"


def _reason(path: Path, is_folder: bool, makes_folders: bool) -> str:
    if not makes_folders and not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if path.exists():
        if path.is_dir() != is_folder:
            return "is a folder" if path.is_dir() else "not a folder"
        return "" if os.access(path, os.W_OK) else "no permission to write"
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not parent.is_dir():
        return f"{parent} is not a folder"
    if not os.access(parent, os.W_OK | os.X_OK):
        return f"no permission to write in {parent}"
    # Root may do everything, and still some file systems take no files.
    with TemporaryFile(dir=parent):
        return ""

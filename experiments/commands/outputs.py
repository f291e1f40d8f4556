"""Options that name a file to be written, which must not be a file that the command reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protocols.errors import UsageError

__all__ = ["check_outputs"]

OUTPUTS = ("core", "csv", "html", "mininet", "out", "svg", "trace")
"""Options with a file to be written."""
RECORDED = (".json", ".jsonl", ".parquet", ".pcap", ".pcapng", ".yaml")
"""Names of files in the folder of a run or a sweep that other commands read end like this."""


def check_outputs(arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raise UsageError if an output is a file that an argument names, or a recording in a folder that an argument names."""
    inputs = [Path(each) for value in arguments.values() for each in (value if isinstance(value, list) else [value]) if each]
    for name in OUTPUTS:
        output = options.get(name)
        if not isinstance(output, Path) or not output.is_file():
            continue
        for source in inputs:
            if source.is_file() and source.samefile(output):
                raise UsageError(f"--{name}: value {str(output)!r} is not allowed; it is a file that this command reads")
            if source.is_dir() and output.suffix in RECORDED and output.resolve().is_relative_to(source.resolve()):
                raise UsageError(f"--{name}: value {str(output)!r} is not allowed; it is a recording of {source}")

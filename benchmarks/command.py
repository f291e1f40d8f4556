"""The command line that benchmarks between network namespaces share."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from protocols.errors import UnsupportedError

__all__ = ["Tell", "parser_of", "run_benchmark"]

Tell = Callable[[str], None]
"""Prints a line of progress."""


def parser_of(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true")
    return parser


def run_benchmark(
    parser: argparse.ArgumentParser, check: Callable[[], object], measure: Callable[[argparse.Namespace, Tell], Any]
) -> int:
    """Read the command line, measure, and print the result with `--json`; return the exit code.

    `check` raises UnsupportedError for what this machine lacks: exit code 3.
    """
    options = parser.parse_args()
    try:
        check()
    except UnsupportedError as error:
        print(error, file=sys.stderr)
        return 3
    result = measure(options, lambda line: print(line, file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps(result))
    return 0

"""Errors that ended the programs of emulated hosts, in a line each."""

import re

__all__ = ["last_call"]

_CALL = re.compile(r'  File "(.*)", line (\d+), in (.*)')


def last_call(error: str) -> str:
    """Return file, line and exception of a traceback, which result.json has in full; return another error as it is."""
    lines = error.splitlines()
    calls = [(number, found) for number, line in enumerate(lines) if (found := _CALL.fullmatch(line))]
    if not calls:
        return error
    last, call = calls[-1]
    # Below the call stands its source, indented.
    raised = " ".join(line for line in lines[last + 1 :] if not line.startswith(" "))
    return f"{call[1]}: line {call[2]}, in {call[3]}: {raised}"

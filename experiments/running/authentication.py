"""Codecs that authenticate messages by keys of a file.

A key file has a line for each key: its id, from 0 to 15, and the key in hexadecimal digits. The first key signs, all are
accepted. Empty lines and lines that begin with # are ignored. No error shows a part of a key.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from experiments.output.counted import counted
from protocols.errors import ConfigError, ReplayedError, StaleError, UnauthenticatedError
from protocols.machine import Codec
from protocols.norm.wire.authentication import TOLERANCE
from protocols.spec import ProtocolSpec
from topologies.input_file import open_input

__all__ = ["node_codec", "read_keys", "readable_keys", "refusals", "refusals_told", "simulated_codec"]

LARGEST_ID = 15
SHORTEST, LONGEST = 16, 64
"""Bytes of a key: not fewer than the MAC has (RFC 6584 5.2), not more than a block of SHA-256."""
REASONS = {
    UnauthenticatedError.reason: "without a valid MAC by a key of the key file",
    ReplayedError.reason: "that were received before",
    StaleError.reason: f"sent over {TOLERANCE:.0f} s before or after this clock's time: recorded ones, or the clocks differ",
}
_FILE_LIMIT = 65_536
_ALLOWED = f"an id from 0 to {LARGEST_ID}, a space, and {2 * SHORTEST} to {2 * LONGEST} hexadecimal digits"


def node_codec(protocol: ProtocolSpec, config: Any) -> Callable[[], Codec]:
    """Return a function that makes the codec of one node: one that authenticates if the config has a `key_file`.

    With a `tunnel_key_file` it takes from tunnels only what is authentic by the keys of that. ConfigError for a key file that
    can't be used.
    """
    return _codec(protocol, config, time.time, shared=False)


def simulated_codec(protocol: ProtocolSpec, config: Any) -> Callable[[], Codec]:
    """Return a function that makes the codec of all nodes of a simulation; its bytes are the same in every run."""
    return _codec(protocol, config, lambda: 0.0, shared=True)


def _codec(protocol: ProtocolSpec, config: Any, clock: Callable[[], float], *, shared: bool) -> Callable[[], Codec]:
    path, make, plain = getattr(config, "key_file", ""), protocol.authenticated, protocol.codec
    if path and make is not None:
        plain = partial(make, read_keys(Path(path)), clock, shared)
    tunnels, guarded = getattr(config, "tunnel_key_file", ""), protocol.guarded
    if not tunnels or guarded is None:
        return plain
    keys = read_keys(Path(tunnels))
    return lambda: guarded(plain(), keys, clock)


def refusals(faults: Mapping[str, int]) -> dict[str, int]:
    """Return from the fault counters of a host the packets that were refused for their authentication, by reason."""
    return {reason: faults[reason] for reason in REASONS if faults.get(reason)}


def refusals_told(faults: Mapping[str, int]) -> str:
    """Return a line about packets that were refused for their authentication; empty for none."""
    return "; ".join(
        f"refused: {counted(count, 'packet', spec=',')} {REASONS[reason]}" for reason, count in refusals(faults).items()
    )


def read_keys(path: Path) -> dict[int, bytes]:
    """Return the keys of a file by their ids, in the order of the file; warn on stderr if others can read it.

    ConfigError names the file and the line, never the key.
    """
    try:
        with open(open_input(path), "rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"key file {path}: can't be read ({error.strerror})") from error
    if len(data) > _FILE_LIMIT:
        raise ConfigError(
            f"key file {path}: has more than {_FILE_LIMIT:,} bytes; a line for each of at most 16 keys is allowed"
        )
    if mode & 0o077:
        _warn(str(path), mode & 0o777)
    keys: dict[int, bytes] = {}
    for number, line in enumerate(data.splitlines(), 1):
        words = line.split()
        if words and not words[0].startswith(b"#"):
            key_id, key = _parsed(words, f"key file {path}: line {number}")
            if key_id in keys:
                raise ConfigError(f"key file {path}: line {number}: key {key_id} is not allowed; it comes twice")
            keys[key_id] = key
    if not keys:
        raise ConfigError(f"key file {path}: has no key; a line is {_ALLOWED}")
    return keys


def readable_keys(option: str, path: Path) -> str:
    """Return the path of a key file that can be used. ConfigError names the option, the file and the line, never the key."""
    try:
        read_keys(path)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from error
    return str(path)


def _parsed(words: list[bytes], where: str) -> tuple[int, bytes]:
    digits = b"0123456789abcdefABCDEF"
    if len(words) == 2 and words[0].isdigit() and len(words[0]) <= 2 and int(words[0]) <= LARGEST_ID:
        key = words[1]
        if not key.strip(digits) and len(key) % 2 == 0 and 2 * SHORTEST <= len(key) <= 2 * LONGEST:
            return int(words[0]), bytes.fromhex(key.decode())
    raise ConfigError(f"{where}: is no key; {_ALLOWED}")


@cache
def _warn(path: str, mode: int) -> None:
    """Warn once of a file that others can read."""
    sys.stderr.write(f"warning: key file {path}: other users can read or change it (mode {mode:o}); chmod 600 it\n")

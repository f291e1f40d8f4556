"""Options that all test peers of NORM share: the role, the group, the node id."""

import argparse
from collections.abc import Iterator
from typing import Any

__all__ = ["add_roles"]


def add_roles(parser: argparse.ArgumentParser, timeout: float) -> Iterator[tuple[str, Any]]:
    """Add the roles "send" and "recv" to a parser; yield each with the function that adds options to it.

    `timeout` is the default of `--timeout`, in seconds.
    """
    roles = parser.add_subparsers(dest="role", required=True)
    for role, node in (("send", 1), ("recv", 2)):
        add = roles.add_parser(role).add_argument
        add("--addr", default="239.7.7.7")
        add("--port", type=int, default=6003)
        add("--node", type=int, default=node)
        add("--iface")
        add("--timeout", type=float, default=timeout)
        yield role, add

"""Commands and groups of commands whose help shows no type beside flags."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

__all__ = ["Command", "Group"]


class _PlainFlags:
    """The part that commands and groups share."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, `--help` included; flags have an empty metavar, in place of their type."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""

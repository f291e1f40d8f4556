"""Commands and groups of commands: their help shows no type beside flags, and their outputs are none of their inputs."""

import re
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from experiments.commands.outputs import check_outputs
from protocols.errors import UsageError

__all__ = ["Command", "Group"]


def _several(value: Any) -> list[Any]:
    """Return the values of an option or argument, of which some take several."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _PlainFlags:
    """The part that commands and groups share."""

    help: str | None

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        # A paragraph is filled to the width of the terminal, not broken where a line of the docstring ends.
        self.help = re.sub(r"(?<!\n)\n *(?!\s)", " ", self.help or "")

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, `--help` included; flags have an empty metavar, in place of their type."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands for options and arguments; an argument whose metavar ends with dots gets no further ones."""
        return [re.sub(r"\.\.\.([\]}])\.\.\.$", r"...\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options and arguments. UsageError for an empty name of a file, which pathlib takes as the working folder."""
        rest: list[str] = super().parse_args(ctx, list(args))
        if not ctx.resilient_parsing:
            written, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            for each in self.params:
                texts, values = _several(written.get(each.name)), _several(ctx.params.get(each.name))
                if "" in texts and isinstance(values[0], Path):
                    name = each.opts[0] if each.param_type_name == "option" else str(each.metavar or each.name).strip("[].")
                    raise UsageError(f"{name}: value '' is not allowed; the name of a file or a folder")
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless its outputs can't be written or would overwrite what it reads."""
        names = {each.name for each in self.params if each.param_type_name == "argument"}
        folders = frozenset(str(each.name) for each in self.params if getattr(each, "metavar", None) == "DIR")
        check_outputs({name: ctx.params.get(name) for name in names}, ctx.params, folders)
        return super().invoke(ctx)


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""

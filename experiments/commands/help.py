"""Commands and groups of commands: their help shows no type beside flags, and their outputs are none of their inputs."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

from experiments.commands.outputs import check_outputs

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

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless its outputs can't be written or would overwrite what it reads."""
        names = {each.name for each in self.params if each.param_type_name == "argument"}
        folders = frozenset(str(each.name) for each in self.params if getattr(each, "metavar", None) == "DIR")
        check_outputs({name: ctx.params.get(name) for name in names}, ctx.params, folders)
        return super().invoke(ctx)


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""

"""What several commands share: how a mistyped name is answered, and options that mean the same everywhere."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from manylabel.suggest import closest


class Commands(TyperGroup):
    """Answers an unknown command with the closest one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            ctx.fail(f"there is no command {args[0]!r}{closest(args[0], names)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped; nothing half-written was left behind", err=True)
            os._exit(130)


PAGE = "<!doctype html"
DATA_HELP = "a label file, a folder of data in any format we know, or 'scenes'"
DataPath = Annotated[str, typer.Argument(help=DATA_HELP)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="any setting, e.g. train.epochs=20")
]
DataFormat = Annotated[
    str | None, typer.Option("--format", help="format of the data, see 'manylabel data formats'; default: detected")
]


def data_section(path: str | None, data_format: str | None) -> dict[str, Any]:
    """The data section of a config from an argument and --format, as far as they are given."""
    section = {"path": path, "format": data_format}
    return {key: value for key, value in section.items() if value is not None}

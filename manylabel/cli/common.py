"""What commands share: how mistyped names and options given in vain are answered; options that mean the same everywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from manylabel.error import ManylabelError
from manylabel.runtime.terminal import echo
from manylabel.suggest import closest


class Commands(TyperGroup):
    """Answers an unknown command with the closest one, and refuses an option that is given twice but counts once."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            ctx.fail(f"there is no command {args[0]!r}{closest(args[0], names)}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _refuse_repeated(command, ctx, rest)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            pass  # and with it what it held open: that is closed, and removed where it is half-written, before we say so
        echo("stopped; nothing half-written was left behind", err=True)
        os._exit(130)


def _refuse_repeated(command: Any, parent: Any, args: list[str]) -> None:
    """Of two values the parser takes the last without a word; a switch that is given twice says the same twice."""
    context = command.context_class(command, parent=parent, resilient_parsing=True)  # what is wrong, parsing says later
    given = command.make_parser(context).parse_args(args=list(args))[2]
    for option in dict.fromkeys(given):
        single = option.param_type_name == "option" and not (option.multiple or option.count)
        switch = single and option.is_flag and not option.secondary_opts
        if single and not switch and given.count(option) > 1:
            names = "/".join([max(option.opts, key=len), *option.secondary_opts])
            raise ManylabelError(f"{names} was given {_times(given.count(option))}; choose one")


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def refuse_given(ctx: Any, names: Sequence[str], why: str) -> None:
    """Stop where the user gave one of these options (named by their parameters): no option is ignored without a word."""
    options = {param.name: max(param.opts, key=len) for param in ctx.command.params}
    given = [options[name] for name in names if ctx.get_parameter_source(name).name == "COMMANDLINE"]
    if given:
        raise ManylabelError(f"{', '.join(given)}: {why}")


def refuse_set_too(settings: Sequence[str] | None, given: Mapping[str, str]) -> None:
    """Stop where --set names what an option that was given says, too; `given`: option → the setting it stands for."""
    for text in settings or ():
        key = text.split("=", 1)[0].strip()
        for option, setting in given.items():
            if key == setting or setting.startswith(f"{key}."):
                raise ManylabelError(f"{option} and --set {key} say the same; leave one of them out")


def each_once(settings: list[str] | None) -> list[str] | None:
    """Stop where --set gives one setting two values: neither is ignored."""
    said: dict[str, str] = {}
    for text in settings or ():
        key, _, value = (part.strip() for part in text.partition("="))
        if said.setdefault(key, value) != value:
            raise ManylabelError(f"--set {key} was given twice, as {said[key]!r:.40} and {value!r:.40}; choose one")
    return settings


DATA_HELP = "a label file, a folder of data in any format we know, or 'scenes'"
DataPath = Annotated[str, typer.Argument(help=DATA_HELP)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="any setting, e.g. train.epochs=20", callback=each_once),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="replace what an earlier command wrote; never what is yours")
]
DataFormat = Annotated[
    str | None, typer.Option("--format", help="format of the data, see 'manylabel data formats'; default: detected")
]


def data_section(path: str | None, data_format: str | None, settings: Sequence[str] | None) -> dict[str, Any]:
    """The data section of a config from an argument and --format, as far as they are given; `settings` say other things."""
    given = {"the argument DATA": ("data.path", path), "--format": ("data.format", data_format)}
    refuse_set_too(settings, {option: key for option, (key, value) in given.items() if value is not None})
    section = {"path": path, "format": data_format}
    return {key: value for key, value in section.items() if value is not None}

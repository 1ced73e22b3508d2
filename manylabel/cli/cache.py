"""`manylabel cache`: what the feature cache holds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from manylabel.cli.common import Commands
from manylabel.runtime.terminal import echo
from manylabel.storage.json_text import to_json

HELP = """The features that were computed once and kept: list them, check them, throw them away.

\b
  manylabel cache list
  manylabel cache verify
  manylabel cache prune --older-than 30
  manylabel cache prune 3f2a --dry-run

They are in the user's cache folder; the variable MANYLABEL_CACHE moves it.
"""

cache_app = typer.Typer(cls=Commands, help=HELP, no_args_is_help=True, rich_markup_mode=None)

Keys = Annotated[
    list[str] | None, typer.Argument(help="keys as 'cache list' shows them, or how they begin", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="as JSON on standard output")]


@cache_app.command("list")
def list_entries(as_json: AsJson = False) -> None:
    """What is there, the one used last first."""
    from manylabel.cache.inventory import entries
    from manylabel.cache_folder import cache_folder
    from manylabel.printing_cache import print_cache

    found = entries()
    if as_json:
        echo(to_json([entry.plain() for entry in found]))
        return
    print_cache(found, cache_folder() / "features")


@cache_app.command()
def verify(keys: Keys = None, as_json: AsJson = False) -> None:
    """Compare every file with its checksum. Ends with 1 when something is wrong."""
    from manylabel import console
    from manylabel.cache.inventory import entries, select
    from manylabel.cache.inventory import verify as look_at

    chosen = select(keys) if keys else entries()
    wrong: dict[str, Any] = {}
    with console.transferring("checking", sum(entry.bytes for entry in chosen)) as advance:
        for entry in chosen:
            found = look_at(entry, advance)
            if found:
                wrong[entry.key] = found
    if as_json:
        echo(to_json({"checked": len(chosen), "wrong": wrong}))
    else:
        for key, found in wrong.items():
            echo(f"{key[:12]}  {'; '.join(found)}")
        echo(f"{len(chosen)} checked, {len(wrong)} with something wrong")
        if wrong:
            echo("what is not done or damaged is computed when it is needed; or remove it: manylabel cache prune KEY")
    raise typer.Exit(1 if wrong else 0)


@cache_app.command()
def prune(
    keys: Keys = None,
    older_than: Annotated[float | None, typer.Option(help="what was not used for so many days", min=0)] = None,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="what was never finished, or cannot be read")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="all of it")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would go")] = False,
) -> None:
    """Throw features away; they are computed again when they are needed."""
    from manylabel.cache.inventory import entries, remove, select, stale
    from manylabel.error import ConfigError

    if keys and everything:
        raise ConfigError("--all means all of it; leave out the keys, or --all")
    if not (keys or everything or incomplete or older_than is not None):
        raise ConfigError("say what to throw away: keys, --older-than DAYS, --incomplete or --all")
    if keys and everything:
        raise ConfigError("keys and --all exclude each other; choose one")
    chosen = select(keys) if keys else entries()
    if older_than is not None:
        chosen = [entry for entry in chosen if stale(entry, older_than)]
    if incomplete:
        chosen = [entry for entry in chosen if not entry.complete]
    gone = 0
    for entry in chosen:
        what = f"{entry.key[:12]}  {entry.bytes / 1e6:.0f} MB  {entry.facts.get('table', '?')}"
        if dry_run or remove(entry):
            gone += entry.bytes
            echo(what)
            if not dry_run and entry.folder.exists():
                echo(f"  {entry.folder} holds other things, too; they are left alone")
        else:
            echo(f"{what}: somebody is using it; left alone")
    echo(f"{gone / 1e6:.0f} MB {'would be' if dry_run else 'are'} free")

"""manylabel bench …: what is in benchmarks/ of the repository; where only the package is installed, where to find it."""

from __future__ import annotations

from pathlib import Path

import typer

from manylabel.error import ConfigError

ROOT = Path(__file__).parents[2]


def add_bench(app: typer.Typer) -> None:
    if (ROOT / "benchmarks" / "commands.py").is_file():
        import benchmarks

        if Path(str(benchmarks.__file__)).parents[1] == ROOT:
            from benchmarks.commands import bench_app

            app.add_typer(bench_app, name="bench")
            return
    anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command("bench", context_settings=anything)(_elsewhere)


def _elsewhere() -> None:
    """Measure ours and a peer side by side (in a clone of the repository)."""
    raise ConfigError(
        "the benchmarks are not part of the installed package; run `manylabel bench` from a clone of the repository that is "
        'installed with pip install -e ".[bench]"'
    )

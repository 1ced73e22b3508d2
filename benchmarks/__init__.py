"""Benchmarks: ours and a peer in the same process, interleaved, on the same inputs.

`manylabel bench` runs them in a clone of the repository; the installed package comes without them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from manylabel.error import ConfigError
from manylabel.suggest import closest

if TYPE_CHECKING:
    from benchmarks.table import Row

BENCHES = ("metrics", "loader", "split", "heads", "hsq", "experts")  # and cost, which counts instead of measuring


def run_bench(name: str, quick: bool = False) -> list[Row]:
    """The rows of one benchmark; each is a module of this package with a `run`."""
    if name not in BENCHES:
        raise ConfigError(f"there is no benchmark {name!r}{closest(name, BENCHES)}")
    rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run(quick)
    return rows

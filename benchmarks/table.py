"""Benchmark rows: one figure of ours beside a peer's, printed as a table and written as JSON."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from manylabel.runtime.rich_console import Terminal
from manylabel.storage.atomic import write_json
from manylabel.storage.output import MADE_BY


@dataclass(frozen=True)
class Row:
    """One comparison. ratio > 1 means that ours is better, whatever the unit."""

    name: str  # what is measured
    case: str  # on which input, and anything one must know to repeat it
    ours: float
    peer: float
    ratio: float
    unit: str  # of ours and peer
    peer_name: str = ""  # what we are compared with


def less_is_better(name: str, case: str, ours: float, peer: float, unit: str, peer_name: str) -> Row:
    """A row of times, bytes or other costs."""
    return Row(name, case, ours, peer, peer / ours, unit, peer_name)


def interleave(ours: Callable[[], object], peer: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of each, run alternately after one warm-up, so that a busy machine slows both alike."""
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, not {repeats}")
    ours()
    peer()
    pairs = [(_seconds(ours), _seconds(peer)) for _ in range(repeats)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def write_rows(rows: Sequence[Any], path: Path) -> None:
    """Any table's rows, each as an object with its fields."""
    write_json(path, {"made_by": MADE_BY, "rows": [asdict(row) for row in rows]})


def print_table(rows: Sequence[Row], console: Terminal | None = None) -> None:
    table = Table()
    for heading in ("what", "case", "ours", "peer", "ratio", "unit", "compared with"):
        table.add_column(heading, overflow="fold")  # never cut a name short
    for row in rows:
        table.add_row(
            row.name, row.case, f"{row.ours:.4g}", f"{row.peer:.4g}", f"{row.ratio:.2f}×", row.unit, row.peer_name
        )
    (console or Terminal()).print(table)

"""What `manylabel compare` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

NAMED = 5  # labels that lose


def print_comparison(comparison: dict[str, Any], losing: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
    out = Console(highlight=False)
    data = comparison["data"]
    table = Table(box=box.SIMPLE_HEAD, title=Text(f"{data['name']} {data['split']}, {data['images']} images"))
    table.add_column("method", overflow="fold")
    for heading in (
        "seeds",
        "mAP",
        "±",
        "against the first",
        "labels +/−",
        "surely +/−",
        "pairs +",
        "M trained",
        "G MAC",
        "s",
    ):
        table.add_column(heading, justify="right")
    against = {row["method"]: row for row in comparison["differences"]}
    for m in comparison["methods"]:
        row = against.get(m["name"])
        table.add_row(
            Text(m["name"]),
            str(len(m["runs"])),
            _number(m["mAP"], ".2f"),
            _number(m["mAP_deviation"], ".2f"),
            _interval(row["mAP"]) if row else "",
            f"{row['better']}/{row['worse']}" if row else "",
            f"{row['surely_better']}/{row['surely_worse']}" if row and comparison["resamples"] else "",
            f"{row['pairs_share']:.0f} %" if row and row["pairs_share"] is not None else "",
            _number(None if m["trainable_parameters"] is None else m["trainable_parameters"] / 1e6, ".2f"),
            _number(m["gmacs"], ".2f"),
            _number(m["train_seconds"], ".0f"),
        )
    out.print(table)
    for row in comparison["differences"]:
        worst = losing(row)
        if worst:
            sure = "surely " if comparison["resamples"] else ""
            names = ", ".join(f"{label['name']} {label['change']:+.1f}" for label in worst[:NAMED])
            more = f" and {len(worst) - NAMED} more" if len(worst) > NAMED else ""
            out.print(f"  · {row['method']}: {sure}worse: {names}{more}", markup=False, soft_wrap=True)
    for pair in comparison["pairs"]:
        gaps = ", ".join(f"{name} {_number(gap, '.1f')}" for name, gap in pair["gap"].items())
        out.print(f"  · gap between {' and '.join(pair['labels'])}: {gaps}", markup=False, soft_wrap=True)
    for note in comparison["notes"]:
        out.print(f"  · {note}", markup=False, soft_wrap=True)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _interval(change: dict[str, float | None]) -> str:
    if change["low"] is None:
        return _number(change["change"], "+.2f")
    return f"{change['change']:+.2f} ({change['low']:+.2f} … {change['high']:+.2f})"

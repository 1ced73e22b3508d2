"""What `manylabel compare` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

NAMED = 5  # labels that lose
DECIDED = ("CF1", "OF1", "CR", "OR")


def print_comparison(comparison: dict[str, Any], losing: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
    out = Console(highlight=False)
    data = comparison["data"]
    title = Text(f"{data['name']} {data['split']}, {data['images']} images")
    table = _table(title, "seeds", "mAP", "±", "M trained", "G MAC", "seconds")
    for m in comparison["methods"]:
        trained = m["trainable_parameters"]
        table.add_row(
            Text(m["name"]),
            str(len(m["runs"])),
            _number(m["mAP"], ".2f"),
            _number(m["mAP_deviation"], ".2f"),
            _number(None if trained is None else trained / 1e6, ".2f"),
            _number(m["gmacs"], ".2f"),
            _number(m["train_seconds"], ".0f"),
        )
    out.print(table)
    table = _table(Text("decided at 0.5"), *DECIDED)
    for m in comparison["methods"]:
        table.add_row(Text(m["name"]), *(_number(m[name], ".1f") for name in DECIDED))
    out.print(table)
    against = Text(f"against {comparison['baseline']}")
    table = _table(against, "mAP", "95 %", "labels +/−", "surely", "pairs +")
    for row in comparison["differences"]:
        mean = row["mAP"]
        known = mean["low"] is not None
        table.add_row(
            Text(row["method"]),
            _number(mean["change"], "+.2f"),
            f"{mean['low']:+.2f} … {mean['high']:+.2f}" if known else "–",
            f"{row['better']}/{row['worse']}",
            f"{row['surely_better']}/{row['surely_worse']}" if comparison["resamples"] else "–",
            "–" if row["pairs_share"] is None else f"{row['pairs_share']:.0f} %",
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


def _table(title: Text, *numbers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, padding=(0, 1, 0, 0))
    table.add_column("method", overflow="fold", min_width=16)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table

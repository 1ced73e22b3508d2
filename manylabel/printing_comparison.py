"""What `manylabel compare` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from manylabel.core.comparison import ComparedMethod, Comparison, Difference, LabelChange, figure_of
from manylabel.figure import figures, headlines_first, with_unit
from manylabel.printing import print_warnings
from manylabel.runtime.rich_console import Terminal

NAMED = 5  # labels that lose
AT_ONCE = 5  # methods in a table of figures


def print_comparison(comparison: Comparison, losing: Callable[[Difference], list[LabelChange]]) -> None:
    out = Terminal()
    print_warnings(out, comparison["warnings"])
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
    for first in range(0, len(comparison["methods"]), AT_ONCE):
        out.print(_figure_table(comparison, comparison["methods"][first : first + AT_ONCE]))
    against = Text(f"against {comparison['baseline']}")
    table = _table(against, "mAP", "95 %", "labels +/−", "surely", "pairs ≥")
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
            out.print(f"  · {row['method']}: {sure}worse: {names}{more}", soft_wrap=True)
    for pair in comparison["pairs"]:
        gaps = ", ".join(f"{name} {_number(gap, '.1f')}" for name, gap in pair["gap"].items())
        out.print(f"  · gap between {' and '.join(pair['labels'])}: {gaps}", soft_wrap=True)
    for note in comparison["notes"]:
        out.print(f"  · {note}", soft_wrap=True)


def _figure_table(comparison: Comparison, methods: Sequence[ComparedMethod]) -> Table:
    """A row for each figure that any of the runs has, headlines first."""
    table = Table(box=box.SIMPLE_HEAD, title=Text("figures in percent, means over seeds"), padding=(0, 1, 0, 0))
    table.add_column("figure", overflow="fold", min_width=16)
    for m in methods:
        table.add_column(Text(m["name"]), justify="right", overflow="fold")
    for one in headlines_first(figures(comparison, {})):
        table.add_row(Text(one.title), *(with_unit(figure_of(m, one.place), one.unit) for m in methods))
    return table


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _table(title: Text, *numbers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, padding=(0, 1, 0, 0))
    table.add_column("method", overflow="fold", min_width=16)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table

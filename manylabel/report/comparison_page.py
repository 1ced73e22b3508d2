"""A comparison of runs (`manylabel compare`) → one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manylabel.core.comparison import Comparison, Difference, LabelChange
from manylabel.figure import figures, headlines_first
from manylabel.report.drawing import embedded
from manylabel.report.page import fill
from manylabel.storage.atomic import write_text

LOSING = 12  # labels that are named


def write_comparison_page(comparison: Comparison, drawn: Sequence[tuple[str, Path]], out: Path) -> Path:
    """The page in the file `out`; `drawn` are (caption, PNG file)."""
    differences = [{**row, "losing": losing(row)[:LOSING]} for row in comparison["differences"]]
    values = {**comparison, "differences": differences, "found": headlines_first(figures(comparison, {}))}
    write_text(
        out, fill("comparison.html.j2", ("style.css", "comparison.css"), (), {}, **values, figures=embedded(drawn))
    )
    return out


def losing(difference: Difference) -> list[LabelChange]:
    """Labels that lose, surely where that is known, worst first: negative transfer."""
    known = any(label["low"] is not None for label in difference["labels"])
    worse = [
        label
        for label in difference["labels"]
        if label["change"] is not None
        and (label["high"] is not None and label["high"] < 0 if known else label["change"] < 0)
    ]
    return sorted(worse, key=lambda label: label["change"] or 0.0)

"""A comparison of runs (`manylabel compare`) → one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manylabel.atomic import write_text
from manylabel.report.drawing import embedded
from manylabel.report.page import fill

LOSING = 12  # labels that are named


def write_comparison_page(comparison: dict[str, Any], figures: Sequence[tuple[str, Path]], out: Path) -> Path:
    """The page in the file `out`; `figures` are (caption, PNG file)."""
    differences = [{**row, "losing": losing(row)[:LOSING]} for row in comparison["differences"]]
    values = {**comparison, "differences": differences}
    write_text(
        out, fill("comparison.html.j2", ("style.css", "comparison.css"), (), {}, **values, figures=embedded(figures))
    )
    return out


def losing(difference: dict[str, Any]) -> list[dict[str, Any]]:
    """Labels that lose, surely where that is known, worst first: negative transfer."""
    known = any(label["low"] is not None for label in difference["labels"])
    worse = [
        label
        for label in difference["labels"]
        if label["change"] is not None
        and (label["high"] is not None and label["high"] < 0 if known else label["change"] < 0)
    ]
    return sorted(worse, key=lambda label: label["change"])

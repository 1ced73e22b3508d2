"""labels.csv of a comparison: every label's average precision by every method, and its differences."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from manylabel.core.comparison import Comparison
from manylabel.spreadsheet import safe_cell, sheet_writer
from manylabel.storage.receipt import write_ours


def write_label_file(comparison: Comparison, path: Path) -> None:
    methods = [method["name"] for method in comparison["methods"]]
    changes = comparison["differences"]
    buffer = io.StringIO()
    writer = sheet_writer(buffer)
    header = ["label", "support", *(f"ap: {name}" for name in methods)]
    for row in changes:
        header += [f"change: {row['method']}", f"low: {row['method']}", f"high: {row['method']}"]
    writer.writerow([safe_cell(cell) for cell in header])
    for i, label in enumerate(comparison["labels"]):
        cells: list[Any] = [
            safe_cell(label),
            comparison["support"][i],
            *(comparison["ap"][name][i] for name in methods),
        ]
        for row in changes:
            its = row["labels"][i]
            cells += [its["change"], its["low"], its["high"]]
        writer.writerow(["" if cell is None else cell for cell in cells])
    write_ours(path, buffer.getvalue())

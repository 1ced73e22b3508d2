"""figures.csv of a comparison: every figure that the runs describe, by every method, with the deviation over seeds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from manylabel.core.comparison import Comparison, figure_of
from manylabel.figure import figures, headlines_first
from manylabel.spreadsheet import safe_cell, sheet_writer
from manylabel.storage.receipt import write_ours


def write_figure_file(comparison: Comparison, path: Path) -> None:
    methods = comparison["methods"]
    buffer = io.StringIO()
    writer = sheet_writer(buffer)
    header = ["figure", "title", "unit", "better"]
    for method in methods:
        header += [method["name"], f"deviation: {method['name']}"]
    writer.writerow([safe_cell(cell) for cell in header])
    for one in headlines_first(figures(comparison, {})):
        cells: list[Any] = [safe_cell(cell) for cell in (one.place, one.title, one.unit, one.better)]
        for method in methods:
            cells += [figure_of(method, one.place), method["deviations"][one.place]]
        writer.writerow(["" if cell is None else cell for cell in cells])
    write_ours(path, buffer.getvalue())

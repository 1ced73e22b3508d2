"""The labels of `manylabel hard` as CSV: how many of their instances are hard, and what goes with it."""

from __future__ import annotations

import io

from manylabel.core.hard_findings import HardFindings
from manylabel.spreadsheet import safe_cell, sheet_writer

HEADER = "label,images,hard,share_hard,low,ap"


def label_csv(found: HardFindings) -> str:
    second = {} if found["second"] is None else {row["name"]: row for row in found["second"]["labels"]}
    alpha = any("alpha" in row for row in found["labels"])
    buffer = io.StringIO()
    writer = sheet_writer(buffer)
    more = ["ap_second", "change", "change_low", "change_high"] if second else []
    writer.writerow(
        [*HEADER.split(","), "training_images", "median_object_share", *(["alpha"] if alpha else []), *more]
    )
    for row in found["labels"]:
        cells = [
            safe_cell(row["name"]),
            row["support"],
            row["hard"],
            row["share"],
            row["low"],
            row["ap"],
            row["train"],
            row["size"],
        ]
        if alpha:
            cells.append(row.get("alpha"))
        if second:
            its = second.get(row["name"])
            cells += [None] * 4 if its is None else [its["second"], its["change"], its["low"], its["high"]]
        writer.writerow(["" if cell is None else cell for cell in cells])
    return buffer.getvalue()

"""Our plainest format: labels.csv with file_name, labels, and the columns that this data needs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from manylabel.data.builder import DELIMITERS
from manylabel.data.read.columns import LabelCells
from manylabel.data.record import Record
from manylabel.data.write.place_images import ImagePlacer
from manylabel.data.write.taken import placed
from manylabel.data.write.target import Content, Target
from manylabel.error import DataError
from manylabel.labels import UNKNOWN
from manylabel.spreadsheet import refuse_cell, safe_cell, sheet_writer
from manylabel.storage.receipt import replacing_ours


def write_csv(content: Content, path: Path) -> list[str]:
    """To `path` if it ends in .csv or .tsv, else to labels.csv in the folder `path`, images beside it."""
    file = path if path.suffix.lower() in (".csv", ".tsv") else path / "labels.csv"
    placer = ImagePlacer(content.source, file.parent / "images", content.images, content.taken)
    delimiter = choose_delimiter(content.labels)
    columns = _columns(content)
    cells: list[str] = []  # of the first rows, to see whether a reader would find the delimiter
    named: set[str] = set()
    things = 0
    with replacing_ours(file) as temporary, open(temporary, "w", newline="", encoding="utf-8") as out:
        rows = sheet_writer(out, "\t" if file.suffix.lower() == ".tsv" else ",")
        rows.writerow(columns)
        for record, name in placed(content.records, lambda record: placer.place(record.key), content.taken):
            _refuse_odd(record, name)
            values = {
                "file_name": name,
                "labels": delimiter.join(record.present),
                "absent_labels": delimiter.join(record.absent),
                "unknown_labels": delimiter.join(record.unknown),
                "split": record.split or "",
                "group": record.group or "",
            }
            rows.writerow([safe_cell(values[column]) for column in columns])
            named.update(record.present, record.absent, record.unknown)
            things += len(record.things)
            if len(cells) < 100_000:
                cells.append(values["labels"])
    notes = placer.note()
    survey = LabelCells(cells)
    if survey.delimiter() not in (delimiter, None) or survey.are_lists:
        notes.append(f"label names hold what looks like a delimiter; read it with --set 'data.delimiter={delimiter}'")
    lost = [name for name in content.labels if name not in named]
    if lost:
        notes.append(f"{len(lost)} labels that no row names are not in a CSV: {', '.join(lost[:5])}")
    if things:
        notes.append(f"{things} boxes and masks are not in a CSV; write COCO to keep them")
    return notes


def _columns(content: Content) -> list[str]:
    """file_name and labels, and of the rest only what some record has."""
    needed = {"absent_labels": content.rest == UNKNOWN, "unknown_labels": False, "split": False, "group": False}
    for record in content.records:
        needed["unknown_labels"] |= content.rest != UNKNOWN and bool(record.unknown)
        needed["split"] |= record.split is not None
        needed["group"] |= record.group is not None
    return ["file_name", "labels", *(name for name, is_needed in needed.items() if is_needed)]


def _refuse_odd(record: Record, name: str) -> None:
    """Before what we could not read again is written."""
    refuse_cell(name, record.where, "the name")
    if record.group:
        refuse_cell(record.group, record.where, "the group")
    for label in (*record.present, *record.absent, *record.unknown):
        refuse_cell(label, record.where, "label")


def choose_delimiter(labels: Iterable[str]) -> str:
    """One that is in no label."""
    names = list(labels)
    for delimiter in DELIMITERS:
        if not any(delimiter in name for name in names):
            return delimiter
    raise DataError(
        f"every delimiter ({' '.join(map(repr, DELIMITERS))}) is part of a label name; write another format"
    )


TARGET = Target("csv", "CSV", write_csv, files=("labels.csv",), suffixes=(".csv", ".tsv"))

"""Google AutoML and Vertex AI import files.

CSV without a header: [SET,]gs://bucket/a.jpg,label,label,…  or, with boxes, [SET,]path,label,x,y,x,y,x,y,x,y where the
corners are shares of width and height and two of the four may be blank. JSON lines with `imageGcsUri`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.image_names import ImageNames, names_of
from manylabel.data.read.jsonl import SUFFIXES, json_lines
from manylabel.data.read.row_value import finite_numbers, one_name
from manylabel.data.read.text_file import text_lines
from manylabel.data.record import Reading, Record, Thing
from manylabel.data.walk import is_image_name
from manylabel.error import DataError

SETS = {"TRAIN": "train", "TRAINING": "train", "VALIDATION": "val", "VALIDATE": "val", "TEST": "test", "UNASSIGNED": ""}
CORNERS = 8  # cells after the label of a row with a box: four times x, y
PEEK = 5  # rows looked at to recognise a file
STORAGE = "gs://"
USE = "aiplatform.googleapis.com/ml_use"


class GivenLabel(TypedDict, total=False):
    """An annotation in JSON lines as strangers give it: nothing is known of its values until they are looked at."""

    displayName: object
    xMin: object
    yMin: object
    xMax: object
    yMax: object


@dataclass(frozen=True)
class _Row:
    where: str
    image: str
    split: str  # '' = not assigned
    labels: tuple[str, ...]
    boxes: tuple[tuple[str, list[float]], ...] = ()  # label; left, top, right, bottom as shares


def read_automl(path: Path, config: DataConfig) -> Reading:
    """An import file whose images are found under its folder (or data.images) by the end of their path."""
    rows = _json_rows if path.suffix.lower() in SUFFIXES else _sheet_rows
    count = assigned = 0
    boxes = False
    for row in rows(path):
        count += 1
        assigned += bool(row.split)
        boxes |= bool(row.boxes)
    notes: list[str] = []
    if 0 < assigned < count:
        notes.append(f"{count - assigned} of {count} rows are in no set, so the sets are not used as splits")
    names = ImageNames(path.parent, config, notes)

    def records() -> Iterator[Record]:
        for row in rows(path):
            record = _record(row, names)
            yield record if assigned == count else replace(record, split=None)

    return Reading("automl", path, names.source, records, repeats=boxes, total=count, notes=notes)


def _record(row: _Row, names: ImageNames) -> Record:
    key = names.key(*names_of(row.image))
    size = names.size(key) if row.boxes else None
    width, height = size or (0, 0)
    things = [
        Thing(label, (left * width, top * height, right * width, bottom * height))
        for label, (left, top, right, bottom) in (row.boxes if size else ())  # without a size there is no image either
    ]
    return Record(key, row.where, present=row.labels, split=row.split or None, things=tuple(things), size=size)


# --- CSV --------------------------------------------------------------------------------------------------------


def _sheet_rows(path: Path) -> Iterator[_Row]:
    reader = csv.reader(text_lines(path), strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _sheet_row([cell.strip() for cell in cells], f"{path.name}, row {reader.line_num}")
    except csv.Error as error:
        raise DataError(f"{path}, row {reader.line_num}: {error}; is a quote not closed?") from error


def _sheet_row(cells: list[str], where: str) -> _Row:
    has_set = cells[0].upper() in SETS or not cells[0]
    split = SETS.get(cells[0].upper(), "")
    image, *rest = (cells[1:] or [""]) if has_set else cells
    if not _looks_like_image(image):
        said = "the set is none of TRAIN, VALIDATION, TEST, UNASSIGNED" if not has_set else "it is no image file"
        raise DataError(f"{where}: {image!r} where the image should be; {said}")
    if len(rest) == CORNERS + 1 and all(cell == "" or _number(cell) is not None for cell in rest[1:]):
        if not any(rest):
            return _Row(where, image, split, ())
        corners = [number for cell in rest[1:] if (number := _number(cell)) is not None]
        if not rest[0] or len(corners) not in (4, CORNERS):
            raise DataError(f"{where}: a box needs a label and 4 or 8 numbers (x and y of corners); mend the row")
        return _Row(where, image, split, (rest[0],), ((rest[0], _extent(corners, where)),))
    labels = tuple(cell for cell in rest if cell)
    for label in labels:
        if "|" in label or ";" in label:
            raise DataError(
                f"{where}: {label!r} looks like several labels, and AutoML has one in each cell; put them into cells, "
                "or add a header (file_name,labels) and read the file as CSV"
            )
    return _Row(where, image, split, labels)


def _extent(corners: list[float], where: str) -> list[float]:
    xs, ys = (finite_numbers(corners[i::2], len(corners) // 2, where) for i in (0, 1))
    return _share_box([min(xs), min(ys), max(xs), max(ys)], where)


def _share_box(box: list[float], where: str) -> list[float]:
    if not (box[0] < box[2] and box[1] < box[3] and max(box) <= 2 and min(box) >= -1):
        raise DataError(f"{where}: box {box}; corners are shares of the image's width and height, from 0 to 1")
    return box


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _looks_like_image(cell: str) -> bool:
    return "://" in cell or is_image_name(cell)


# --- JSON lines -------------------------------------------------------------------------------------------------


def _json_rows(path: Path) -> Iterator[_Row]:
    for where, row in json_lines(path):
        image = row.get("imageGcsUri")
        if not isinstance(image, str) or not image:
            raise DataError(f"{where}: field 'imageGcsUri' is missing; fill it in or delete the line")
        given = row.get("dataItemResourceLabels") or {}
        if not isinstance(given, dict):
            raise DataError(f"{where}: field 'dataItemResourceLabels' must be an object such as {{{USE!r}: 'test'}}")
        use = str(given.get(USE, "")).upper()
        if use and use not in SETS:
            raise DataError(f"{where}: {USE} {use.lower()!r} is none of training, validation, test")
        whole = _entries(row, "classificationAnnotations", where) or _entries(row, "classificationAnnotation", where)
        boxes = tuple(_json_box(entry, where) for entry in _entries(row, "boundingBoxAnnotations", where))
        labels = [_display_name(entry, where) for entry in whole] + [label for label, _ in boxes]
        yield _Row(where, image, SETS.get(use, ""), tuple(dict.fromkeys(labels)), boxes)


def _entries(row: dict[str, Any], field: str, where: str) -> list[GivenLabel]:
    value = row.get(field) or []
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{where}: field {field!r} must hold objects with 'displayName'")
    return entries


def _display_name(entry: GivenLabel, where: str) -> str:
    return one_name(entry.get("displayName"), where, "an annotation without 'displayName'")


def _json_box(entry: GivenLabel, where: str) -> tuple[str, list[float]]:
    sides = [entry.get(side, 0) for side in ("xMin", "yMin", "xMax", "yMax")]  # a 0 is left out when Google writes it
    return _display_name(entry, where), _share_box(finite_numbers(sides, 4, where), where)


# --- detection --------------------------------------------------------------------------------------------------


def _sniff(path: Path) -> str:
    try:
        if path.suffix.lower() in SUFFIXES and path.is_file():
            first = next(json_lines(path), None)
            return "imageGcsUri in its lines" if first and "imageGcsUri" in first[1] else ""
        if path.suffix.lower() != ".csv" or not path.is_file():
            return ""
        rows = islice((row for row in csv.reader(text_lines(path)) if any(map(str.strip, row))), PEEK)
        peek = [[cell.strip() for cell in row] for row in rows]
    except (DataError, csv.Error):
        return ""
    ours = peek and any(map(_looks_like_image, peek[0][:2])) and all(map(_is_ours, peek))
    return "no header, sets and image addresses with labels" if ours else ""


def _is_ours(cells: list[str]) -> bool:
    """A set, or an address in Google's storage; 'a.jpg,cat' may be anybody's."""
    return cells[0].upper() in SETS or any(cell.lower().startswith(STORAGE) for cell in cells[:2])


FORMAT = Format("automl", "Google AutoML", _sniff, read_automl)

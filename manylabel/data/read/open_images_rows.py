"""Rows of Open Images' CSV files that belong to images at hand: the files cover millions of images, most are not."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from manylabel.data.read.row_value import number_in
from manylabel.data.read.text_file import text_lines
from manylabel.data.record import Box
from manylabel.error import DataError

ANSWERS = {"1": True, "1.0": True, "0": False, "0.0": False}
LABEL_COLUMNS = ("ImageID", "Source", "LabelName", "Confidence")
BOX_COLUMNS = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")


def rows_at_hand(
    path: Path, images: Mapping[str, int], columns: tuple[str, ...]
) -> Iterator[tuple[int, int, dict[str, int], list[str]]]:
    """(row, number of the image, column → position, cells) of every row whose ImageID is among the images."""
    reader = csv.reader(text_lines(path), strict=True)
    try:
        header = row = next(reader, [])
        position = _positions(path, header, columns)
        image_column = position["ImageID"]
        for row in reader:
            try:
                image = images.get(row[image_column])
            except IndexError:  # a blank line, or one that was cut off
                image = None if not row else -1
            if image is None:
                continue
            _refuse_other_length(path, reader.line_num, row, header)
            yield reader.line_num, image, position, row
    except csv.Error as error:
        raise DataError(f"{path}, row {reader.line_num}: {error}; is a quote not closed?") from error
    if row:  # a download that broke off ends in half a row, most likely of an image that is not at hand
        _refuse_other_length(path, reader.line_num, row, header)


def _positions(path: Path, header: list[str], columns: tuple[str, ...]) -> dict[str, int]:
    names = [name.strip() for name in header]
    for column in columns:
        if names.count(column) != 1:
            raise DataError(
                f"{path}, row 1: {names.count(column)} columns {column!r} (there is: {', '.join(names) or 'nothing'}); "
                f"the file needs {', '.join(columns)}, fetch it again"
            )
    return {name: i for i, name in enumerate(names)}


def _refuse_other_length(path: Path, line: int, row: list[str], header: list[str]) -> None:
    if len(row) != len(header):
        raise DataError(
            f"{path}, row {line}: {len(row)} cells where the header has {len(header)}; "
            "the file is cut off or damaged, fetch it again"
        )


NO, YES, MACHINE = 1, 2, 4  # who said what of a label: people that it is not there or that it is, a machine that it is


def read_answer(where: str, source: str, confidence: str, sure: float | None) -> int:
    """NO, YES or MACHINE; 0 for a row that does not count. `sure`: the confidence from which on a machine's label counts."""
    found = ANSWERS.get(confidence)
    if found is None and not 0 < number_in(confidence, f"{where}, Confidence") < 1:
        raise DataError(f"{where}: Confidence {confidence!r} is neither 1 (present) nor 0 (absent); mend it")
    if found is not None and source != "machine":
        return YES if found else NO
    return MACHINE if sure is not None and float(confidence) >= sure else 0


def read_box(where: str, row: list[str], at: Mapping[str, int], clip: bool) -> Box | None:
    """left, top, right, bottom as shares of the image's sides; None for a box without area."""
    left, right, top, bottom = (number_in(row[at[name]], f"{where}, {name}") for name in BOX_COLUMNS[2:])
    if min(left, top) < 0 or max(right, bottom) > 1:
        if not clip:
            raise DataError(
                f"{where}: the box from ({left:g}, {top:g}) to ({right:g}, {bottom:g}) is outside its image, which "
                "goes from 0 to 1; mend it, or cut such boxes at the edge with --set data.boxes=clip"
            )
        left, right, top, bottom = (min(max(value, 0.0), 1.0) for value in (left, right, top, bottom))
    if left > right or top > bottom:
        raise DataError(
            f"{where}: the box ends before it begins (XMin {left:g}, XMax {right:g}, YMin {top:g}, YMax {bottom:g})"
        )
    return None if left == right or top == bottom else (left, top, right, bottom)

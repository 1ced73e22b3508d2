"""A CSV or TSV file as rows under a header, read as it comes."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from manylabel.data.read.columns import FILE_COLUMNS, KINDS, plain_name
from manylabel.data.read.text_file import text_lines
from manylabel.error import DataError
from manylabel.spreadsheet import plain_cell

SAME = (FILE_COLUMNS, *(names for kind, names in KINDS.items() if kind != "file"))  # two of one kind are one too many
SEPARATOR_LINE = re.compile(r"\s*\"?sep=.\"?\s*$")  # what Excel takes as a hint in the first line


@dataclass(frozen=True)
class Sheet:
    """A file of rows under a header."""

    path: Path
    separator: str
    header: tuple[str, ...]

    def column(self, names: Iterable[str]) -> int | None:
        return next((i for i, cell in enumerate(self.header) if plain_name(cell) in names), None)

    def at(self, line: int) -> str:
        return f"{self.path.name}, row {line}"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line in the file, cells) of every row below the header."""
        reader = csv.reader(text_lines(self.path), delimiter=self.separator, strict=True)
        width, header_passed = len(self.header), False
        try:
            for cells in reader:
                text = "".join(cells)
                if not text.strip() or ("sep=" in text and SEPARATOR_LINE.match(self.separator.join(cells))):
                    continue
                if not header_passed:
                    header_passed = True
                    continue
                while len(cells) > width and not cells[-1].strip():
                    cells.pop()  # empty columns at the end, as spreadsheets leave them
                if len(cells) != width:
                    many = "put cells that contain the separator in double quotes"
                    raise DataError(
                        f"{self.path}, row {reader.line_num}: {len(cells)} cells where the header has {width}; "
                        + (many if len(cells) > width else "fill in the missing ones")
                    )
                if "\n" in text or "\r" in text:
                    raise DataError(
                        f"{self.path}, row {reader.line_num}: a cell runs over several lines; is a quote not closed?"
                    )
                yield reader.line_num, [plain_cell(cell) for cell in cells] if "'" in text else cells
        except csv.Error as error:
            raise DataError(f"{self.path}, row {reader.line_num}: {error}; is a quote not closed?") from error


def open_sheet(path: Path) -> Sheet:
    """The sheet with its header checked."""
    lines = (line for line in text_lines(path) if line.strip() and not SEPARATOR_LINE.match(line))
    first = next(lines, "")
    if not first:
        raise DataError(f"{path} is empty; it needs a header row such as 'file_name,labels' and one row per image")
    separator = max((",", "\t", ";"), key=first.count)
    try:
        cells = next(csv.reader([first], delimiter=separator))
    except csv.Error as error:
        raise DataError(f"{path}, row 1: {error}; is a quote not closed?") from error
    return Sheet(path, separator, _checked_header(path, cells))


def _checked_header(path: Path, cells: list[str]) -> tuple[str, ...]:
    header = tuple(cell.strip() for cell in cells)
    while len(header) > 1 and not header[-1]:
        header = header[:-1]
    if header[0] == "":
        header = ("Unnamed: 0", *header[1:])
    name, times = Counter(header).most_common(1)[0]
    if times > 1:
        raise DataError(f"{path}, row 1: {times} columns are called {name!r}; keep one of them")
    for kind in SAME:
        same = [cell for cell in header if plain_name(cell) in kind]
        if len(same) > 1:
            raise DataError(f"{path}, row 1: columns {' and '.join(map(repr, same))} mean the same; keep one of them")
    if "" in header:
        raise DataError(f"{path}, row 1: column {header.index('') + 1} has no name")
    return header

"""A CSV or TSV file as rows under a header, read as it comes, and the columns that mean something to us."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from manylabel.data.read.text_file import text_lines
from manylabel.error import DataError
from manylabel.spreadsheet import plain_cell

FILE_COLUMNS = ("file_name", "filename", "file", "image", "image_path", "path", "image_name")
OTHER_FILE_COLUMNS = (  # taken for the image files where none of the above is there, the first before the others
    *("filepath", "file_path", "img_path", "image_file", "imagepath", "img", "fname", "photo", "picture"),
    *("image_id", "imageid", "img_id", "image_index", "id", "image_url", "url", "name"),
)
LABEL_COLUMNS = ("labels", "label", "tags", "classes", "class", "category", "categories", "finding_labels")
SPLIT_COLUMNS = ("split", "subset")
GROUP_COLUMNS = ("group", "group_id", "patient", "patient_id")
UNKNOWN_COLUMNS = ("unknown_labels",)
ABSENT_COLUMNS = ("absent_labels",)  # where this one is, labels that a row does not name are unknown
COUNTERS = ("unnamed:_0",)  # pandas writes the number of the row into a first column without a name
COLUMN_KINDS = (FILE_COLUMNS, LABEL_COLUMNS, SPLIT_COLUMNS, GROUP_COLUMNS, UNKNOWN_COLUMNS, ABSENT_COLUMNS)
SEPARATOR_LINE = re.compile(r"\s*\"?sep=.\"?\s*$")  # what Excel takes as a hint in the first line


@dataclass(frozen=True)
class Sheet:
    """A file of rows under a header."""

    path: Path
    separator: str
    header: tuple[str, ...]

    def column(self, names: Iterable[str]) -> int | None:
        found = [i for i, cell in enumerate(self.header) if plain_name(cell) in names]
        return found[0] if found else None

    def files(self) -> int | None:
        """The column with the image files."""
        others = (self.column((name,)) for name in OTHER_FILE_COLUMNS)
        usual = self.column(FILE_COLUMNS)
        return usual if usual is not None else next((i for i in others if i is not None), None)

    def at(self, line: int) -> str:
        return f"{self.path.name}, row {line}"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line in the file, cells) of every row below the header."""
        reader = csv.reader(text_lines(self.path), delimiter=self.separator, strict=True)
        header_passed = False
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells) or SEPARATOR_LINE.match(self.separator.join(cells)):
                    continue
                while len(cells) > len(self.header) and not cells[-1].strip():
                    cells.pop()  # empty columns at the end, as spreadsheets leave them
                if not header_passed:
                    header_passed = True
                elif len(cells) != len(self.header):
                    many = "put cells that contain the separator in double quotes"
                    raise DataError(
                        f"{self.path}, row {reader.line_num}: {len(cells)} cells where the header has {len(self.header)}; "
                        + (many if len(cells) > len(self.header) else "fill in the missing ones")
                    )
                elif any("\n" in cell or "\r" in cell for cell in cells):
                    raise DataError(
                        f"{self.path}, row {reader.line_num}: a cell runs over several lines; is a quote not closed?"
                    )
                else:
                    yield reader.line_num, [plain_cell(cell) for cell in cells] if "'" in "".join(cells) else cells
        except csv.Error as error:
            raise DataError(f"{self.path}, row {reader.line_num}: {error}; is a quote not closed?") from error


def plain_name(name: str) -> str:
    return name.lower().replace(" ", "_")


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
    for kind in COLUMN_KINDS:
        same = [cell for cell in header if plain_name(cell) in kind]
        if len(same) > 1:
            raise DataError(f"{path}, row 1: columns {' and '.join(map(repr, same))} mean the same; keep one of them")
    if "" in header:
        raise DataError(f"{path}, row 1: column {header.index('') + 1} has no name")
    return header

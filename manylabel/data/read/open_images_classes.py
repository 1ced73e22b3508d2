"""Which of Open Images' classes are labels, and what they are called."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from manylabel.data.read.distinct_names import distinct_names, shared_names
from manylabel.data.read.text_file import text_lines
from manylabel.error import DataError


@dataclass
class Classes:
    """Which MIDs are labels, and what they are called."""

    names: dict[str, str]  # MID → label
    number: dict[str, int]  # MID → position in `names`
    closed: bool  # a list of trainable labels says which there are

    @classmethod
    def read(cls, descriptions: list[Path], trainable: Path | None, notes: list[str]) -> Classes:
        """From files of class descriptions, of which the first that has a MID counts, and the list of labels to use."""
        described: dict[str, str] = {}
        for path in descriptions:
            for mid, name in _descriptions(path).items():
                described.setdefault(mid, name)
        wanted = described
        if trainable is not None:
            wanted = {mid: described[mid] for mid in _trainable(trainable, described)}
            notes.append(f"labels are the {len(wanted)} trainable ones of {trainable.name}")
        names = distinct_names(wanted)
        if shared := shared_names(wanted, names):
            listed = ", ".join(shared[:3]) + (", …" if len(shared) > 3 else "")
            notes.append(f"{len(shared)} names belong to several MIDs and carry them in brackets: {listed}")
        return cls(names, {mid: i for i, mid in enumerate(names)}, trainable is not None)

    def label(self, mid: str, path: Path, line: int) -> int | None:
        """Its number; None for one that is not trainable."""
        number = self.number.get(mid)
        if number is None and not self.closed:
            raise DataError(
                f"{path.name}, row {line}: label {mid!r} is not in the class descriptions; "
                "fetch the class-descriptions.csv of the same version"
            )
        return number


def _descriptions(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    reader = csv.reader(text_lines(path), strict=True)
    try:
        for row in reader:
            where = f"{path}, row {reader.line_num}"
            if not row or (not found and not row[0].startswith("/")):  # the header, which older versions do not have
                continue
            if len(row) != 2 or not row[0].strip() or not row[1].strip():
                raise DataError(f"{where}: expected a LabelName and a DisplayName, found {', '.join(row)[:80]!r}")
            mid, name = row[0].strip(), row[1].strip()
            if found.setdefault(mid, name) != name:
                raise DataError(f"{where}: {mid!r} is {name!r} here and {found[mid]!r} above; delete one")
    except csv.Error as error:
        raise DataError(f"{path}, row {reader.line_num}: {error}; is a quote not closed?") from error
    if not found:
        raise DataError(f"{path} describes no class; it needs rows such as '/m/011k07,Tortoise'")
    return found


def _trainable(path: Path, described: dict[str, str]) -> list[str]:
    found: dict[str, None] = {}
    for line, text in enumerate(text_lines(path), 1):
        mid = text.strip()
        if mid and mid not in described:
            raise DataError(f"{path}, row {line}: {mid!r} is not in the class descriptions; fetch both of one version")
        if mid:
            found[mid] = None
    if not found:
        raise DataError(f"{path} names no label; delete it to use all, or fetch it again")
    return list(found)

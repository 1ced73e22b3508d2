"""Records as a reader gives them → records that can be trusted, one at a time, or an error that names the place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

from manylabel.config import DataConfig
from manylabel.data.read.places import FileNames, escapes, is_file_name, why_missing
from manylabel.data.record import Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS
from manylabel.error import DataError
from manylabel.hierarchy import Hierarchy
from manylabel.labels import label_key
from manylabel.suggest import closest

MARKUP = re.compile(r"<[a-zA-Z/!]|[\x00-\x1f]")
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # cannot be written to any file
MOST_NAMED = 10  # how many bad rows an error lists
ROUNDING = 2.0  # pixels that a box may stick out of its image: annotation tools round


_key = lru_cache(maxsize=100_000)(label_key)  # the same few names come again and again


class CheckedRecords:
    """The records of a reading that hold. Iterating again starts from the beginning.

    `notes` tells what was left out or merged, once an iteration has ended.
    """

    def __init__(self, reading: Reading, config: DataConfig, hierarchy: Hierarchy | None = None) -> None:
        self.reading = reading
        self.config = config
        self.hierarchy = hierarchy
        self.notes: list[str] = []
        self._good_names: set[str] = set()  # names that were looked at before

    def __iter__(self) -> Iterator[Record]:
        self.notes = []
        seen: set[int] = set()  # hashes: a tenth of the memory of the names
        gone: list[tuple[str, str]] = []
        count = missing = 0
        together = self._repeated() if self.config.duplicates == "merge" or self.reading.repeats else {}
        files = self._file_names()
        unlabelled = 0
        for record, reason in self._found(files):
            count += 1
            if record.unlabelled:
                unlabelled += 1
                continue
            if hash(record.key) in seen:
                if record.key not in together:
                    self._refuse_duplicate(record)
                continue
            seen.add(hash(record.key))
            if reason:
                missing += 1
                if missing <= MOST_NAMED:
                    gone.append((record.where, reason))
                continue
            parts = [self._labels(self._checked(part)) for part in together.get(record.key, [record])]
            yield parts[0] if len(parts) == 1 else _merged(parts)
        if unlabelled == count > 0:
            raise DataError(
                f"{self.reading.path}: no image has labels, not even an empty list; there is nothing to learn"
            )
        if unlabelled:
            self.notes.append(f"{unlabelled} images have no field with labels, not even an empty one, and are left out")
        self._finish(count, missing, gone, together, files)

    def names(self) -> set[str]:
        """Every label that a record names, in its own spelling."""
        return {
            self._name(name, record)
            for record in self.reading.records()
            for name in (*record.present, *record.absent, *record.unknown, *(thing.label for thing in record.things))
        }

    # --- images ------------------------------------------------------------------------------------------------

    def _file_names(self) -> FileNames | None:
        source = self.reading.source
        return FileNames(source.root) if isinstance(source, FileSource) else None

    def _found(self, files: FileNames | None) -> Iterator[tuple[Record, str]]:
        """Each record under the name that its image has on disk, and why there is none, or ''."""
        for record in self.reading.records():
            if not record.key:
                raise DataError(f"{record.where}: the image file is blank; fill it in or delete the row")
            yield (record, "") if files is None else self._on_disk(record, files)

    def _on_disk(self, record: Record, files: FileNames) -> tuple[Record, str]:
        key = record.key
        if not is_file_name(key):
            raise DataError(f"{record.where}: {key[:40]!r}… is no file name, or not UTF-8; rename it")
        if "://" in key or escapes(key):
            found = files.find_by_end(key)
            if found is None and "://" not in key:
                raise DataError(
                    f"{record.where}: {key!r} leads out of the data folder; use names relative to {files.root}, "
                    "or give the folder of the images with --set data.images=FOLDER"
                )
            if found is not None and (other := files.taken.setdefault(found, key)) != key:
                raise DataError(
                    f"{record.where}: {key!r} and {other!r} both end like {found!r}; use names relative to {files.root}"
                )
        else:
            found = files.find(key)
        if found is None:
            return record, why_missing(files.root, key)
        return (record if found == key else replace(record, key=found)), ""

    def _finish(
        self,
        count: int,
        missing: int,
        gone: list[tuple[str, str]],
        together: dict[str, list[Record]],
        files: FileNames | None,
    ) -> None:
        root = getattr(self.reading.source, "root", self.reading.path)
        if count == 0:
            raise DataError(f"{self.reading.path} names no image; there is nothing to read")
        if missing == count:
            listed = "\n".join(f"  {where}: {reason}" for where, reason in gone)
            raise DataError(
                f"none of the {count} image files is in {root}:\n{listed}\nSay where they are with --set data.images=FOLDER"
            )
        if missing and self.config.missing == "error":
            named = "\n".join(f"  {where}: {reason}" for where, reason in gone)
            raise DataError(
                f"{missing} of {count} image files are missing in {root}:\n{named}"
                f"{_and_more(missing - len(gone))}\nMend the rows, say where the images are with "
                "--set data.images=FOLDER, or go on without them with --set data.missing=drop"
            )
        if missing:
            where, reason = gone[0]
            self.notes.append(
                f"{missing} rows were left out because their image files are not there, first {where}: {reason}"
            )
        if files is not None and files.mended:
            self.notes.append(f"{files.mended} names of images are not quite those of the files: {files.example}")
        extra = sum(len(parts) - 1 for parts in together.values())
        if extra and not self.reading.repeats:
            self.notes.append(f"{extra} repeated rows were merged: an image has every label that any of its rows gives")

    # --- repeated images ---------------------------------------------------------------------------------------

    def _repeated(self) -> dict[str, list[Record]]:
        """The records of every image that has more than one."""
        seen: set[int] = set()
        twice: set[int] = set()
        for record, _ in self._found(self._file_names()):
            (twice if hash(record.key) in seen else seen).add(hash(record.key))
        found: dict[str, list[Record]] = {}
        if twice:
            for record, _ in self._found(self._file_names()):
                if hash(record.key) in twice:
                    found.setdefault(record.key, []).append(record)
        return found

    def _refuse_duplicate(self, record: Record) -> None:
        first = next(other for other, _ in self._found(self._file_names()) if other.key == record.key)
        place = _short(first.where, record.where)
        if first.split != record.split:
            raise DataError(
                f"{record.where}: {record.key!r} is in another split than in {place}: what a model was trained on "
                "cannot judge it; delete one"
            )
        raise DataError(
            f"{record.where}: {record.key!r} already stands in {place}; "
            "delete one, or join their labels with --set data.duplicates=merge"
        )

    # --- labels ------------------------------------------------------------------------------------------------

    def _checked(self, record: Record) -> Record:
        """Split and boxes as they should be."""
        split = record.split
        if split is not None:
            cell = split.strip().lower()
            if cell not in SPLITS:
                raise DataError(f"{record.where}: split {split!r} is none we know{closest(cell, SPLITS)}")
            split = SPLITS[cell]
        things = record.things
        if record.size is not None and things:
            things = tuple(inside for thing in things if (inside := self._inside(thing, record)) is not None)
        return (
            record if split == record.split and things is record.things else replace(record, split=split, things=things)
        )

    def _inside(self, thing: Thing, record: Record) -> Thing | None:
        """The thing with its box cut at the image's edge; None if nothing of it is left."""
        assert record.size is not None
        (left, top, right, bottom), (width, height) = thing.box, record.size
        clipped = (max(left, 0.0), max(top, 0.0), min(right, float(width)), min(bottom, float(height)))
        if clipped == thing.box:
            return thing
        out = max(abs(a - b) for a, b in zip(clipped, thing.box, strict=True))
        if out > ROUNDING and self.config.boxes == "error":
            raise DataError(
                f"{record.where}: the box of {thing.label!r} from ({left:g}, {top:g}) to ({right:g}, {bottom:g}) is outside "
                f"its image of {width}×{height} pixels; mend it, or cut such boxes at the edge with --set data.boxes=clip"
            )
        if clipped[0] >= clipped[2] or clipped[1] >= clipped[3]:
            return None
        return replace(thing, box=clipped)

    def _labels(self, record: Record) -> Record:
        """Names checked, synonyms replaced, and what the hierarchy implies."""
        present = self._names(record.present, record)
        absent = self._names(record.absent, record)
        unknown = self._names(record.unknown, record)
        for name in present if absent or unknown else ():
            if name in absent or name in unknown:
                other = "absent" if name in absent else "unknown"
                raise DataError(f"{record.where}: label {name!r} is given as present and as {other}")
        things = record.things
        if self.hierarchy is not None:
            present, absent, unknown = self._implied(record, set(present), set(absent), set(unknown))
            things = tuple(replace(thing, label=self._name(thing.label, record)) for thing in things)
        elif present is record.present and absent is record.absent and unknown is record.unknown:
            return record
        return replace(record, present=present, absent=absent, unknown=unknown, things=things)

    def _implied(
        self, record: Record, present: set[str], absent: set[str], unknown: set[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        assert self.hierarchy is not None
        present = present | self.hierarchy.ancestors(present)
        absent = absent | self.hierarchy.descendants(absent)
        for name in sorted(present & absent):
            raise DataError(
                f"{record.where}: label {name!r} is both present and absent by {self.hierarchy.where} "
                "(a present label makes its ancestors present, an absent one its descendants absent); mend one of them"
            )
        unknown = (unknown | self.hierarchy.ancestors(unknown)) - present - absent
        return tuple(sorted(present)), tuple(sorted(absent)), tuple(sorted(unknown))

    def _names(self, names: tuple[str, ...], record: Record) -> tuple[str, ...]:
        """Each once: 'cat|cat', and a name beside its synonym, are one label."""
        found = dict.fromkeys([self._name(name, record) for name in names])
        if len(found) > 1 and len(set(map(_key, found))) != len(found):
            a, b = next((a, b) for a, b in combinations(found, 2) if _key(a) == _key(b))
            raise DataError(
                f"{record.where}: labels {a!r} and {b!r} are the same but for case or spacing; write them alike"
            )
        return names if len(found) == len(names) and self.hierarchy is None else tuple(found)

    def _name(self, name: str, record: Record) -> str:
        if self.hierarchy is not None:
            known = self.hierarchy.name(name)
            if known is None:
                raise DataError(
                    f"{record.where}: label {name!r} is not in {self.hierarchy.where}"
                    f"{closest(name, self.hierarchy.names)}; mend it or add it there"
                )
            return known
        if name not in self._good_names:
            self.refuse_markup((name,), record.where)
            self._good_names.add(name)
        return name

    def refuse_markup(self, names: Iterable[str], where: str = "") -> None:
        for name in names:
            if HALF_CHARACTER.search(name):
                raise DataError(
                    f"{where or self.reading.path}: label {name!r} holds half of a character; write it anew"
                )
            if not self.config.allow_markup and MARKUP.search(name):
                raise DataError(
                    f"{where or self.reading.path}: label {name!r} looks like markup, not a name; mend it, "
                    "or keep it (it is escaped wherever it is shown) with --set data.allow_markup=true"
                )


def _merged(parts: list[Record]) -> Record:
    """Present in any is present, else absent where any says so, and unknown only where all do."""
    first = parts[0]
    for part in parts[1:]:
        if part.split != first.split:
            place = _short(first.where, part.where)
            raise DataError(f"{part.where}: {part.key!r} is in another split than in {place}; delete one")
    present = dict.fromkeys(name for part in parts for name in part.present)
    absent = dict.fromkeys(name for part in parts for name in part.absent if name not in present)
    unknown = set(first.unknown).intersection(*(part.unknown for part in parts[1:])) - present.keys() - absent.keys()
    return replace(
        first,
        present=tuple(present),
        absent=tuple(absent),
        unknown=tuple(sorted(unknown)),
        group=next((part.group for part in parts if part.group is not None), None),
        things=tuple(thing for part in parts for thing in part.things),
        size=next((part.size for part in parts if part.size is not None), None),
    )


def _short(where: str, other: str) -> str:
    """'row 2' of 'labels.csv, row 2' where the file was named already."""
    file, _, place = where.rpartition(", ")
    return place if other.startswith(f"{file}, ") else where


def _and_more(count: int) -> str:
    return f" (and {count} more)" if count > 0 else ""

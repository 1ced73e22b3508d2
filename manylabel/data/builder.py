"""Records as a reader gives them → columns that can be trusted, in one pass, or an error that names the place.

From the columns come the table, and the records that a writer wants. A million rows take about 200 MB.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.finder import FileNames, escapes, is_file_name, why_missing
from manylabel.data.mask import AnyMask
from manylabel.data.objects import Objects
from manylabel.data.record import Box, Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS, Table
from manylabel.error import DataError
from manylabel.hierarchy import Hierarchy
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace, label_key
from manylabel.suggest import closest

MARKUP = re.compile(r"<[a-zA-Z/!]|[\x00-\x1f]")
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # cannot be written to any file
DELIMITERS = ("|", ";", ",", "\t")
OTHER_SIGNS = ("/", "&", "+")
NOBODYS_LABELS = {"nan", "none", "null", "n/a", "na", "set()", "[]"}
MOST_NAMED = 10  # how many bad rows an error lists
MOST_LISTS = 100_000  # different lists of labels that are remembered
ROUNDING = 2.0  # pixels that a box may stick out of its image: annotation tools round
LONGEST_GROUP = 1000
STATES = (PRESENT,), (ABSENT,), (UNKNOWN,)  # in the order in which a record has them
GONE = -1  # row of an image that is not there


class TableBuilder:
    """The columns of a whole reading. Entry i of a column is image i; of `label` and `state` those of image i end at
    end[i]; the columns of things have an entry for each object."""

    def __init__(self, reading: Reading, config: DataConfig, hierarchy: Hierarchy | None = None) -> None:
        self.reading, self.config, self.hierarchy = reading, config, hierarchy
        self.files = FileNames(reading.source.root) if isinstance(reading.source, FileSource) else None
        self.row: dict[str, int] = {}  # image → its row, or GONE
        self.number: dict[str, int] = {}  # label → its number, in the order met
        self.names: list[str] = []  # of these numbers
        self.split: list[str] = []
        self.group: list[str] = []
        self.size = array("i")  # width, height; 0 = not told
        self.of_record = array("q")  # row of each record
        self.end, self.label, self.state = array("q"), array("i"), array("b")
        self.thing_row, self.thing_label, self.box, self.flags = array("q"), array("i"), array("d"), array("b")
        self.masks: list[AnyMask | None] = []
        self.count = self.unlabelled = self.missing = 0
        self._gone: list[str] = []  # why the first images are not there
        self._without_split = ""
        self._splits: dict[str | None, str] = {None: ""}  # as written → as we call it
        self._lists: dict[tuple[str, ...], tuple[int, ...]] = {(): ()}  # that were looked at before
        told = hierarchy is not None or reading.labels is not None
        self.labels = self._label_space() if told else LabelSpace(())
        for record in reading.records():
            self._add(record)
        self._finish()
        self.labels = self.labels if told else self._label_space()

    # --- one record --------------------------------------------------------------------------------------------

    def _add(self, record: Record) -> None:
        self.count += 1
        key, reason = self._on_disk(record)
        said = self._said(record)
        if record.unlabelled:
            self.unlabelled += 1
            return
        row = self.row.get(key)
        if row is not None and self.config.duplicates == "error":
            self._refuse_duplicate(key, record)
        if reason or row == GONE:
            self.missing += row is None
            if row is None and len(self._gone) < MOST_NAMED:
                self._gone.append(f"{record.where}: {reason}")
            self.row[key] = GONE
            return
        split = self._split_of(record)
        if row is None:
            row = self.row[key] = len(self.split)
            self.split.append(split)
            self.group.append(self._group_of(record))
            self.size.extend(record.size or (0, 0))
            if not split and not self._without_split:
                self._without_split = record.where
        else:
            self._join(row, split, key, record)
        self.of_record.append(row)
        for numbers, state in zip(said, STATES, strict=True):
            if numbers:
                self.label.extend(numbers)
                self.state.extend(state * len(numbers))
        self.end.append(len(self.label))
        for thing in record.things:
            self._add_thing(row, thing, record)

    def _on_disk(self, record: Record) -> tuple[str, str]:
        """(the name that its image has on disk, why there is none or '')"""
        key, files = record.key, self.files
        if not key:
            raise DataError(f"{record.where}: the image file is blank; fill it in or delete the row")
        if files is None:
            return key, ""
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
        return (key, why_missing(files.root, key)) if found is None else (found, "")

    def _split_of(self, record: Record) -> str:
        found = self._splits.get(record.split)
        if found is None:
            cell = (record.split or "").strip().lower()
            if cell not in SPLITS:
                raise DataError(f"{record.where}: split {record.split!r} is none we know{closest(cell, SPLITS)}")
            found = self._splits[record.split] = SPLITS[cell]
        return found

    def _group_of(self, record: Record) -> str:
        group = record.group or ""
        if len(group) > LONGEST_GROUP:
            raise DataError(f"{record.where}: a group of {len(group)} characters; is that the right column?")
        return group

    def _join(self, row: int, split: str, key: str, record: Record) -> None:
        """Another record of an image."""
        if split != self.split[row]:
            place = _short(self._first(key).where, record.where)
            raise DataError(f"{record.where}: {key!r} is in another split than in {place}; delete one")
        self.group[row] = self.group[row] or self._group_of(record)
        if record.size and not self.size[2 * row]:
            self.size[2 * row : 2 * row + 2] = array("i", record.size)

    def _refuse_duplicate(self, key: str, record: Record) -> None:
        first = self._first(key)
        place = _short(first.where, record.where)
        if first.split != record.split:
            raise DataError(
                f"{record.where}: {key!r} is in another split than in {place}: what a model was trained on "
                "cannot judge it; delete one"
            )
        raise DataError(
            f"{record.where}: {key!r} already stands in {place}; "
            "delete one, or join their labels with --set data.duplicates=merge"
        )

    def _first(self, key: str) -> Record:
        """Looked up again, so that the places of all need not be kept."""
        if self.files is not None:
            self.files.taken.clear()
        return next(record for record in self.reading.records() if self._on_disk(record)[0] == key)

    # --- labels and objects ------------------------------------------------------------------------------------

    def _said(self, record: Record) -> tuple[tuple[int, ...], ...]:
        """Numbers of the labels that are present, absent and unknown, checked, and with what the hierarchy implies."""
        for thing in record.things:
            self._numbers((thing.label,), record)
        if self.hierarchy is None and not record.absent and not record.unknown:  # nearly always
            return self._numbers(record.present, record), (), ()
        present, absent, unknown = (self._numbers(n, record) for n in (record.present, record.absent, record.unknown))
        for number in present if absent or unknown else ():
            if number in absent or number in unknown:
                other = "absent" if number in absent else "unknown"
                raise DataError(f"{record.where}: label {self.names[number]!r} is given as present and as {other}")
        if self.hierarchy is None:
            return present, absent, unknown
        return self._implied(record, *({self.names[i] for i in said} for said in (present, absent, unknown)))

    def _implied(
        self, record: Record, present: set[str], absent: set[str], unknown: set[str]
    ) -> tuple[tuple[int, ...], ...]:
        assert self.hierarchy is not None
        present = present | self.hierarchy.ancestors(present)
        absent = absent | self.hierarchy.descendants(absent)
        for name in sorted(present & absent):
            raise DataError(
                f"{record.where}: label {name!r} is both present and absent by {self.hierarchy.where} "
                "(a present label makes its ancestors present, an absent one its descendants absent); mend one of them"
            )
        unknown = (unknown | self.hierarchy.ancestors(unknown)) - present - absent
        return tuple(self._numbers(tuple(sorted(said)), record) for said in (present, absent, unknown))

    def _numbers(self, names: tuple[str, ...], record: Record) -> tuple[int, ...]:
        """Each once: 'cat|cat', and a name beside its synonym, are one label."""
        known = self._lists.get(names)
        if known is not None:
            return known
        found = dict.fromkeys([self._checked(name, record.where) for name in names])
        if len(found) > 1 and len(set(map(label_key, found))) != len(found):
            a, b = next((a, b) for a, b in combinations(found, 2) if label_key(a) == label_key(b))
            raise DataError(
                f"{record.where}: labels {a!r} and {b!r} are the same but for case or spacing; write them alike"
            )
        for name in found:
            if name not in self.number:
                self.number[name] = len(self.names)
                self.names.append(name)
        numbers = tuple(self.number[name] for name in found)
        if len(self._lists) < MOST_LISTS:
            self._lists[names] = numbers
        return numbers

    def _checked(self, name: str, where: str) -> str:
        if self.hierarchy is not None:
            known = self.hierarchy.name(name)
            if known is None:
                raise DataError(
                    f"{where}: label {name!r} is not in {self.hierarchy.where}"
                    f"{closest(name, self.hierarchy.names)}; mend it or add it there"
                )
            return known
        if HALF_CHARACTER.search(name):
            raise DataError(f"{where}: label {name!r} holds half of a character; write it anew")
        if not self.config.allow_markup and MARKUP.search(name):
            raise DataError(
                f"{where}: label {name!r} looks like markup, not a name; mend it, "
                "or keep it (it is escaped wherever it is shown) with --set data.allow_markup=true"
            )
        return name

    def _add_thing(self, row: int, thing: Thing, record: Record) -> None:
        box = thing.box if record.size is None else self._inside(thing, record.size, record.where)
        if box is not None:
            self.thing_row.append(row)
            self.thing_label.extend(self._numbers((thing.label,), record))
            self.box.extend(box)
            self.flags.extend((thing.crowd, thing.difficult))
            self.masks.append(thing.mask)

    def _inside(self, thing: Thing, size: tuple[int, int], where: str) -> Box | None:
        """The box cut at the image's edge; None if nothing of it is left."""
        (left, top, right, bottom), (width, height) = thing.box, size
        if left >= 0 and top >= 0 and right <= width and bottom <= height:
            return thing.box
        clipped = (max(left, 0.0), max(top, 0.0), min(right, float(width)), min(bottom, float(height)))
        out = max(abs(a - b) for a, b in zip(clipped, thing.box, strict=True))
        if out > ROUNDING and self.config.boxes == "error":
            raise DataError(
                f"{where}: the box of {thing.label!r} from ({left:g}, {top:g}) to ({right:g}, {bottom:g}) is outside "
                f"its image of {width}×{height} pixels; mend it, or cut such boxes at the edge with --set data.boxes=clip"
            )
        return None if clipped[0] >= clipped[2] or clipped[1] >= clipped[3] else clipped

    # --- all records -------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Refuse what only all records together show, and note what was left out or merged."""
        path, notes = self.reading.path, self.reading.notes
        if not self.count:
            raise DataError(f"{path} names no image; there is nothing to read")
        if self.unlabelled == self.count:
            raise DataError(f"{path}: no image has labels, not even an empty list; there is nothing to learn")
        if self.unlabelled:
            notes.append(f"{self.unlabelled} images have no field with labels, not even an empty one, and are left out")
        if self.missing:
            self._tell_missing()
        if any(self.split) and not all(self.split):
            raise DataError(
                f"{self._without_split}: the image is in no split while others of {path.name} are; fill it in"
            )
        if self.files is not None and self.files.mended:
            notes.append(f"{self.files.mended} names of images are not quite those of the files: {self.files.example}")
        if extra := len(self.of_record) - len(self.split):
            notes.append(f"{extra} repeated rows were merged: an image has every label that any of its rows gives")
            self._merge()

    def _tell_missing(self) -> None:
        root = getattr(self.reading.source, "root", self.reading.path)
        listed = "\n".join(f"  {place}" for place in self._gone)
        if not self.split:
            raise DataError(
                f"none of the {self.count} image files is in {root}:\n{listed}\n"
                "Say where they are with --set data.images=FOLDER"
            )
        if self.config.missing == "error":
            more = f" (and {self.missing - len(self._gone)} more)" if self.missing > len(self._gone) else ""
            raise DataError(
                f"{self.missing} of {self.count} image files are missing in {root}:\n{listed}{more}\nMend the rows, say "
                "where the images are with --set data.images=FOLDER, or go on without them with --set data.missing=drop"
            )
        self.reading.notes.append(
            f"{self.missing} rows were left out because their image files are not there, first {self._gone[0]}"
        )

    def _merge(self) -> None:
        """One record for each image: present in any is present, else absent where any says so, else unknown."""
        parts: list[list[dict[int, int]]] = [[] for _ in self.split]
        for row, entries in zip(self.of_record, self._entries(), strict=True):
            parts[row].append(entries)
        self.label, self.state, self.end = array("i"), array("b"), array("q")
        for said in parts:
            for number in dict.fromkeys(chain.from_iterable(said)):
                self.label.append(number)
                self.state.append(max(each.get(number, self.reading.rest) for each in said))
            self.end.append(len(self.label))

    def _entries(self) -> Iterator[dict[int, int]]:
        """label → state of each record; what is said last counts."""
        start = 0
        for end in self.end:
            yield dict(zip(self.label[start:end], self.state[start:end], strict=True))
            start = end

    def _label_space(self) -> LabelSpace:
        """The labels in their order: the label file's, else the format's own, else sorted as found."""
        path = self.reading.path
        if self.hierarchy is not None:
            names = self.hierarchy.names
        elif self.reading.labels is not None:
            names = tuple(self._checked(name, str(path)) for name in self.reading.labels)
        else:
            names = tuple(sorted(self.number))
            self._look_at_names(names)
        if not names:
            raise DataError(f"{path}: no image has a label; there is nothing to learn")
        try:
            return LabelSpace(names)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def _look_at_names(self, names: tuple[str, ...]) -> None:
        """Names that are several labels, written with another delimiter than the rest, or none at all."""
        notes = self.reading.notes
        for name in names if self.config.delimiter is None else ():
            for sign in DELIMITERS + OTHER_SIGNS:
                pieces = [piece for part in name.split(sign) if (piece := part.strip())] if sign in name else []
                if len(pieces) > 1 and self.number.keys() >= set(pieces):
                    if sign in OTHER_SIGNS:
                        notes.append(f"label {name!r} looks like several; --set data.delimiter={sign!r}")
                        break
                    raise DataError(
                        f"{self._first_with(name)}: {name!r} separates labels by {sign!r} where other rows do not; "
                        "use one delimiter, or name it with --set data.delimiter=…"
                    )
        if odd := [name for name in names if label_key(name) in NOBODYS_LABELS]:
            notes.append(f"there is a label {odd[0]!r}; if it means that there is none, leave the cell empty")

    def _first_with(self, name: str) -> str:
        """Where a label is named first."""
        said = (
            (r.where, (*r.present, *r.absent, *r.unknown, *(t.label for t in r.things))) for r in self.reading.records()
        )
        return next((where for where, names in said if name in names), str(self.reading.path))

    def _positions(self) -> np.ndarray:
        """Label number → place in the label space; -1 for a label of images that are left out. [numbers]"""
        used = {*self.label, *self.thing_label}
        place = {name: i for i, name in enumerate(self.labels)}
        found = []
        for number, name in enumerate(self.names):
            at = place.get(name, -1)
            if at < 0 and number in used:
                try:
                    at = self.labels.index(name)
                except DataError as error:
                    raise DataError(f"{self._first_with(name)}: {error}; it is not in the list of labels") from None
            found.append(at)
        return np.array(found, np.int64)

    # --- what comes of it --------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        return [key for key, row in self.row.items() if row != GONE]

    def table(self) -> Table:
        reading, place = self.reading, self._positions()
        ends = np.array(self.end, np.int64)
        rows = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        matrix = np.full((len(ends), len(self.labels)), reading.rest, np.int8)
        matrix[rows, place[np.array(self.label, np.int64)]] = np.array(self.state, np.int8)  # of equals the last counts
        sizes = np.array(self.size, np.int32).reshape(-1, 2)
        return Table(
            name=reading.name or (reading.path.name if reading.path.is_dir() else reading.path.resolve().parent.name),
            source=reading.source,
            keys=np.array(self.keys(), dtype=str),
            labels=self.labels,
            matrix=matrix,
            split=np.array(self.split, dtype=str) if any(self.split) else None,
            groups=np.array(self.group, dtype=str) if any(self.group) else None,
            sizes=sizes if sizes.any() else None,
            objects=self._objects(place) if self.thing_row else None,
            hierarchy=self.hierarchy,
            notes=tuple(reading.notes),
        )

    def _objects(self, place: np.ndarray) -> Objects:
        row, flags = np.array(self.thing_row, np.int64), np.array(self.flags, bool).reshape(-1, 2)
        order = np.argsort(row, kind="stable")
        return Objects(
            row=row[order],
            label=place[np.array(self.thing_label, np.int64)].astype(np.int32)[order],
            box=np.array(self.box, np.float32).reshape(-1, 4)[order],
            crowd=flags[order, 0],
            difficult=flags[order, 1],
            masks=tuple(self.masks[i] for i in order),
        )

    def __iter__(self) -> Iterator[Record]:
        """The same as records, with their labels as the label space spells them."""
        place = self._positions()
        names = [self.labels.names[at] if at >= 0 else "" for at in place.tolist()]
        things = np.argsort(np.array(self.thing_row, np.int64), kind="stable")
        starts = np.searchsorted(np.array(self.thing_row, np.int64)[things], np.arange(len(self.split) + 1)).tolist()
        for row, (key, entries) in enumerate(zip(self.keys(), self._entries(), strict=True)):
            said: dict[int, list[str]] = {PRESENT: [], ABSENT: [], UNKNOWN: []}
            for number, state in entries.items():
                said[state].append(names[number])
            yield Record(
                key=key,
                where=f"{self.reading.path.name}, image {key!r}",
                present=tuple(said[PRESENT]),
                absent=tuple(said[ABSENT]),
                unknown=tuple(said[UNKNOWN]),
                split=self.split[row] or None,
                group=self.group[row] or None,
                things=tuple(self._thing(i, names) for i in things[starts[row] : starts[row + 1]].tolist()),
                size=(self.size[2 * row], self.size[2 * row + 1]) if self.size[2 * row] else None,
            )

    def _thing(self, i: int, names: list[str]) -> Thing:
        left, top, right, bottom = self.box[4 * i : 4 * i + 4]
        crowd, difficult = map(bool, self.flags[2 * i : 2 * i + 2])
        return Thing(names[self.thing_label[i]], (left, top, right, bottom), crowd, difficult, self.masks[i])


def _short(where: str, other: str) -> str:
    """'row 2' of 'labels.csv, row 2' where the file was named already."""
    file, _, place = where.rpartition(", ")
    return place if other.startswith(f"{file}, ") else where

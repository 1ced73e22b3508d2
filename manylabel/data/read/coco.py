"""MS-COCO: JSON files of images, annotations and categories; LVIS, and what labelling tools export in that form.

A label is present in an image that has any annotation of it, a crowd too. What nobody annotated is absent; but in
files with 'neg_category_ids' (LVIS, and our own) only those are, and all else is unknown. A category that an image
names in 'not_exhaustive_category_ids' without an annotation of it is unknown there; so is one whose objects all have
'ignore': 1. We also read 'split' and 'group' of an image.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as brief
from typing import Any, Final, TypedDict, cast
from urllib.parse import urlsplit

from manylabel.config import DataConfig
from manylabel.data.read.coco_annotation import Annotation, GivenAnnotation, read_annotation
from manylabel.data.read.coco_category import identity_of, read_categories
from manylabel.data.read.coco_files import ImagePlace, find_images, label_files, splits_of
from manylabel.data.read.format import Format
from manylabel.data.read.spool import Spool
from manylabel.data.read.text_file import json_items
from manylabel.data.record import Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.error import DataError
from manylabel.labels import ABSENT, UNKNOWN

SAMPLE = 50  # images looked at to find their folder
NEGATIVE: Final = "neg_category_ids"
PARTIAL: Final = "not_exhaustive_category_ids"


class GivenImage(TypedDict, total=False):
    """An entry of 'images' as strangers give it; nothing is known of its values until they are looked at."""

    id: object
    file_name: object
    coco_url: object
    width: object
    height: object
    split: object
    group: object
    neg_category_ids: object
    not_exhaustive_category_ids: object


def read_coco(path: Path, config: DataConfig) -> Reading:
    """A COCO file, or a folder with one for each split."""
    files = label_files(path) or ([path] if path.is_file() else [])
    if not files:
        raise DataError(f"{path} holds no COCO label file (annotations/instances_*.json, train/_annotations.coco.json)")
    notes: list[str] = []
    images = Spool()
    parts = [_Part(file, split) for file, split in zip(files, splits_of(files), strict=True)]
    for part in parts:
        part.categories = read_categories(part.path, notes)
        part.read_images(images)
    root, places = find_images(path, files, [part.sample for part in parts], config, notes)
    for part, place in zip(parts, places, strict=True):
        part.place = place
    coco = _Coco(parts, images, config, notes)
    return Reading(
        "coco", path, FileSource(root), coco.records, labels=coco.labels, rest=coco.rest, total=len(images), notes=notes
    )


@dataclass
class _Part:
    """One label file."""

    path: Path
    split: str | None
    categories: dict[Any, str] = field(default_factory=dict)  # id → name, in the order of the ids
    rows: dict[Any, int] = field(default_factory=dict)  # id of an image → its row in the spool
    sample: list[str] = field(default_factory=list)  # names of the first images
    negatives: bool = False  # absent labels are named, all others are unknown
    place: ImagePlace = ImagePlace("")

    def read_images(self, images: Spool) -> None:
        for number, entry in enumerate(json_items(self.path, "images.item"), 1):
            where = f"{self.path.name}, images, entry {number}"
            if not isinstance(entry, dict):
                raise DataError(f"{where}: not an object with 'id' and 'file_name'")
            image = cast(GivenImage, entry)
            identity = identity_of(image, "id", where)
            if identity in self.rows:
                raise DataError(f"{where}: another image has the id {identity!r}, too; give each its own")
            self.rows[identity] = row = len(images)
            self.negatives |= NEGATIVE in image
            facts = self._facts(image, f"{self.path.name}, image {identity}")
            if len(self.sample) < SAMPLE:
                self.sample.append(facts[0])
            images.add(row, json.dumps(facts, separators=(",", ":")).encode())
        if not self.rows:
            raise DataError(f"{self.path} has no 'images'; there is nothing to read")

    def _facts(self, entry: GivenImage, where: str) -> list[Any]:
        """[name, size, split, group, names of absent labels, names of unknown labels, where]"""
        width, height = entry.get("width"), entry.get("height")
        size = [width, height] if all(isinstance(side, int) and side > 0 for side in (width, height)) else None
        group = entry.get("group")
        return [
            _image_name(entry, where),
            size,
            str(entry["split"]) if entry.get("split") else self.split,
            None if group in (None, "") else str(group),
            self._names(entry, NEGATIVE, where),
            self._names(entry, PARTIAL, where),
            where,
        ]

    def _names(self, entry: GivenImage, key: str, where: str) -> list[str]:
        listed = entry.get(key) or []
        if not isinstance(listed, list):
            raise DataError(f"{where}: {key} must be a list of category ids, not {brief(listed)}")
        return list(dict.fromkeys(self.category(each, f"{where}, {key}") for each in listed))

    def category(self, identity: Any, where: str) -> str:
        try:
            return self.categories[identity]
        except (KeyError, TypeError):
            raise DataError(
                f"{where}: category {brief(identity)} is not in 'categories'; mend it or add it there"
            ) from None


class _Coco:
    """The label files together, and their annotations once somebody asks for records."""

    def __init__(self, parts: list[_Part], images: Spool, config: DataConfig, notes: list[str]) -> None:
        self.parts = parts
        self.images = images
        self.config = config
        self.notes = notes
        self.labels = tuple(dict.fromkeys(name for part in parts for name in part.categories.values()))
        self.rest = UNKNOWN if any(part.negatives for part in parts) else ABSENT
        self._annotations: Spool | None = None
        if self.rest == UNKNOWN:
            notes.append(
                f"labels are unknown where an image has neither an annotation of them nor lists them in {NEGATIVE}"
            )
        for part in parts:
            if missing := [name for name in self.labels if name not in set(part.categories.values())]:
                notes.append(
                    f"{part.path.name} does not have {len(missing)} labels of the other files ({', '.join(missing[:3])}); "
                    "they are unknown in its images"
                )

    def records(self) -> Iterator[Record]:
        if self._annotations is None:
            self._annotations = self._read_annotations()
        for part in self.parts:
            names = set(part.categories.values())
            outside = [name for name in self.labels if name not in names] if self.rest == ABSENT else []
            inside = tuple(names) if self.rest == UNKNOWN and not part.negatives else ()
            for row in part.rows.values():
                found = [Annotation.unpacked(data) for data in self._annotations.of(row)]
                yield self._record(part, json.loads(self.images.of(row)[0]), found, outside, inside)

    def _record(
        self, part: _Part, facts: list[Any], found: list[Annotation], outside: list[str], inside: tuple[str, ...]
    ) -> Record:
        name, size, split, group, absent, partial, where = facts
        present = dict.fromkeys(self.labels[each.label] for each in found if not each.difficult)
        hidden = [self.labels[each.label] for each in found if each.difficult]
        unknown = dict.fromkeys(name for name in (*hidden, *partial, *outside) if name not in present)
        absent = dict.fromkeys((*absent, *(name for name in inside if name not in present and name not in unknown)))
        return Record(
            key=part.place.key(name),
            where=where,
            present=tuple(present),
            absent=tuple(absent),
            unknown=tuple(name for name in unknown if name not in absent),
            split=split,
            group=group,
            things=tuple(
                Thing(self.labels[each.label], each.box, each.crowd, each.difficult, each.mask)
                for each in found
                if each.box is not None
            ),
            size=None if size is None else (size[0], size[1]),
        )

    def _read_annotations(self) -> Spool:
        spool = Spool()
        odd: Counter[str] = Counter()
        position = {name: i for i, name in enumerate(self.labels)}
        for part in self.parts:
            for number, entry in enumerate(json_items(part.path, "annotations.item"), 1):
                identity = entry.get("id", f"number {number}") if isinstance(entry, dict) else f"number {number}"
                where = f"{part.path.name}, annotation {identity}"
                if not isinstance(entry, dict):
                    raise DataError(f"{where}: not an object with 'image_id' and 'category_id'")
                given = cast(GivenAnnotation, entry)
                row = self._row(part, given, where, odd)
                if row is not None:
                    label = position[part.category(identity_of(given, "category_id", where), where)]
                    spool.add(row, read_annotation(given, label, where, odd).packed())
        if not len(spool) and self.rest == ABSENT:
            listed = ", ".join(part.path.name for part in self.parts)
            raise DataError(f"{listed}: no annotation, so no image has a label; there is nothing to learn")
        self.notes += [f"{count} {what}" for what, count in odd.items()]
        return spool

    def _row(self, part: _Part, entry: GivenAnnotation, where: str, odd: Counter[str]) -> int | None:
        identity = identity_of(entry, "image_id", where)
        row = part.rows.get(identity)
        if row is None and self.config.missing == "error":
            raise DataError(
                f"{where}: no image has the id {identity!r}; add it to 'images', or leave such annotations out with "
                "--set data.missing=drop"
            )
        if row is None:
            odd["annotations were left out because no image has their image_id"] += 1
        return row


def _image_name(entry: GivenImage, where: str) -> str:
    name = entry.get("file_name")
    if isinstance(name, str) and name.strip():
        return name.strip().replace("\\", "/")
    url = entry.get("coco_url")  # LVIS has nothing else: …/train2017/000000000009.jpg
    if isinstance(url, str) and "/" in url:
        return "/".join(urlsplit(url).path.split("/")[-2:]).lstrip("/")
    raise DataError(f"{where}: neither 'file_name' nor 'coco_url' names its file; fill one in")


def _sniff(path: Path) -> str:
    files = label_files(path)
    if not files:
        return ""
    shown = files[0].name if path.is_file() else str(files[0].relative_to(path))
    return shown + (f" and {len(files) - 1} more" if len(files) > 1 else "")


FORMAT = Format("coco", "COCO", _sniff, read_coco)

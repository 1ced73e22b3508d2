"""MS-COCO: JSON files of images, annotations and categories; LVIS, and what labelling tools export in that form.

A label is present in an image that has any annotation of it, a crowd too. What nobody annotated is absent; but in
files with 'neg_category_ids' (LVIS, and our own) only those are, and all else is unknown. A category that an image
names in 'not_exhaustive_category_ids' without an annotation of it is unknown there; so is one whose objects all have
'ignore': 1. We also read 'split' and 'group' of an image. A file is decoded as a whole; masks wait in their bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from reprlib import repr as brief
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from manylabel.config import DataConfig
from manylabel.data.read.coco_annotation import Annotation, read_shape
from manylabel.data.read.coco_files import find_images, label_files, splits_of
from manylabel.data.read.text_file import decode_json, json_kind
from manylabel.data.record import Format, Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.error import DataError
from manylabel.labels import ABSENT, UNKNOWN

SAMPLE = 50  # images looked at to find their folder
NEGATIVE: Final = "neg_category_ids"
PARTIAL: Final = "not_exhaustive_category_ids"


class Image(msgspec.Struct):
    """An entry of 'images' as strangers give it; nothing is known of its values until they are looked at."""

    id: Any = None
    file_name: Any = None
    coco_url: Any = None
    width: Any = None
    height: Any = None
    split: Any = None
    group: Any = None
    neg_category_ids: Any = msgspec.UNSET
    not_exhaustive_category_ids: Any = None


class File(msgspec.Struct):
    images: list[Image] = []
    annotations: list[Annotation] = []
    categories: Any = None


_FILE = msgspec.json.Decoder(File)


def read_coco(path: Path, config: DataConfig) -> Reading:
    """A COCO file, or a folder with one for each split."""
    files = label_files(path) or ([path] if path.is_file() else [])
    if not files:
        raise DataError(f"{path} holds no COCO label file (annotations/instances_*.json, train/_annotations.coco.json)")
    notes: list[str] = []
    parts = [_Part(file, split, notes) for file, split in zip(files, splits_of(files), strict=True)]
    root, places = find_images(path, files, [part.sample() for part in parts], config, notes)
    labels = tuple(dict.fromkeys(name for part in parts for name in part.categories.values()))
    rest = UNKNOWN if any(part.negatives for part in parts) else ABSENT
    if rest == UNKNOWN:
        notes.append(
            f"labels are unknown where an image has neither an annotation of them nor lists them in {NEGATIVE}"
        )
    notes += _gaps(parts, labels)
    if rest == ABSENT and not any(part.content.annotations for part in parts):
        listed = ", ".join(part.path.name for part in parts)
        raise DataError(f"{listed}: no annotation, so no image has a label; there is nothing to learn")
    odd: Counter[str] = Counter()
    by_image = [part.annotations(config.missing == "error", odd) for part in parts]
    notes += [f"{count} {what}" for what, count in odd.items()]

    def records() -> Iterator[Record]:
        odd: Counter[str] = Counter()
        for part, place, entries in zip(parts, places, by_image, strict=True):
            names = set(part.categories.values())
            outside = [name for name in labels if name not in names] if rest == ABSENT else []
            inside = tuple(names) if rest == UNKNOWN and not part.negatives else ()
            for image in part.content.images:
                record = part.record(image, entries.get(image.id, ()), outside, inside, odd)
                record.key = place.key(record.key)
                yield record
        for what, count in odd.items():
            if (note := f"{count} {what}") not in notes:
                notes.append(note)

    return Reading(path, FileSource(root), records, labels, rest, notes=notes)


def _gaps(parts: list[_Part], labels: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        if missing := [name for name in labels if name not in set(part.categories.values())]:
            yield (
                f"{part.path.name} does not have {len(missing)} labels of the other files ({', '.join(missing[:3])}); "
                "they are unknown in its images"
            )


class _Part:
    """One label file."""

    def __init__(self, path: Path, split: str | None, notes: list[str]) -> None:
        if json_kind(path) != "object":
            raise DataError(f"{path} must hold a JSON object with 'images', 'annotations' and 'categories'")
        self.path, self.split = path, split
        self.content: File = decode_json(path, _FILE)
        self.categories = self._categories(notes)  # id → name, in the order of the ids
        self.negatives = any(image.neg_category_ids is not msgspec.UNSET for image in self.content.images)
        if not self.content.images:
            raise DataError(f"{path} has no 'images'; there is nothing to read")
        seen = set()
        for number, image in enumerate(self.content.images, 1):
            where = f"{path.name}, images, entry {number}"
            if _identity(image.id, "id", where) in seen:
                raise DataError(f"{where}: another image has the id {image.id!r}, too; give each its own")
            seen.add(image.id)

    def sample(self) -> list[str]:
        return [_image_name(image, self._where(image)) for image in self.content.images[:SAMPLE]]

    def _where(self, image: Image) -> str:
        return f"{self.path.name}, image {image.id}"

    def _categories(self, notes: list[str]) -> dict[Any, str]:
        found: dict[Any, str] = {}
        above: dict[Any, Any] = {}
        given = self.content.categories if isinstance(self.content.categories, list) else []
        for number, entry in enumerate(given, 1):
            where = f"{self.path.name}, categories, entry {number}"
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"].strip():
                raise DataError(f"{where}: not an object with 'id' and a 'name' that is a text")
            identity = _identity(entry.get("id"), "id", where)
            if identity in found:
                raise DataError(f"{where}: another category has the id {identity!r}, too; give each its own")
            found[identity], above[identity] = entry["name"].strip(), entry.get("supercategory")
        if not found:
            raise DataError(
                f"{self.path} has no 'categories', so it tells no labels; if it is a file of captions, use instances_*.json"
            )
        # Roboflow puts a category above all others that no annotation ever has; its name may even be that of another
        roots = [i for i in found if above[i] == "none" and any(above[j] == found[i] for j in found if j != i)]
        used = {str(each.category_id) for each in self.content.annotations} if roots else set()
        for root in (root for root in roots if str(root) not in used):
            notes.append(f"category {found.pop(root)!r} of {self.path.name} only groups the others and is no label")
        names = Counter(found.values())
        if twice := next((name for name, count in names.items() if count > 1), None):
            ids = [i for i, name in found.items() if name == twice]
            raise DataError(
                f"{self.path.name}, categories {ids[0]!r} and {ids[1]!r}: both are called {twice!r}; rename one"
            )
        return dict(sorted(found.items(), key=lambda item: (isinstance(item[0], str), item[0])))

    def _category(self, identity: Any, where: str) -> str:
        try:
            return self.categories[identity]
        except (KeyError, TypeError):
            raise DataError(
                f"{where}: category {brief(identity)} is not in 'categories'; mend it or add it there"
            ) from None

    def annotations(self, strict: bool, odd: Counter[str]) -> dict[Any, list[Annotation]]:
        """id of an image → its annotations."""
        images = {image.id for image in self.content.images}
        found: dict[Any, list[Annotation]] = {}
        for number, entry in enumerate(self.content.annotations, 1):
            entry.id = f"number {number}" if entry.id is None else entry.id
            where = f"{self.path.name}, annotation {entry.id}"
            if _identity(entry.image_id, "image_id", where) in images:
                self._category(_identity(entry.category_id, "category_id", where), where)
                found.setdefault(entry.image_id, []).append(entry)
            elif strict:
                raise DataError(
                    f"{where}: no image has the id {entry.image_id!r}; add it to 'images', or leave such annotations out "
                    "with --set data.missing=drop"
                )
            else:
                odd["annotations were left out because no image has their image_id"] += 1
        return found

    def _names(self, listed: Any, key: str, where: str) -> list[str]:
        if not isinstance(listed, list):
            raise DataError(f"{where}: {key} must be a list of category ids, not {brief(listed)}")
        return [self._category(each, f"{where}, {key}") for each in listed]

    def record(
        self,
        image: Image,
        annotations: Iterable[Annotation],
        outside: list[str],
        inside: tuple[str, ...],
        odd: Counter[str],
    ) -> Record:
        """`outside`: labels of other files only; `inside`: labels that this file says of every image."""
        where = self._where(image)
        present: dict[str, None] = {}
        unknown: dict[str, None] = {}
        things = []
        for entry in annotations:
            name = self.categories[entry.category_id]
            (unknown if entry.ignore else present)[name] = None
            box, mask = read_shape(entry, f"{self.path.name}, annotation {entry.id}", odd)
            if box is not None:
                things.append(Thing(name, box, bool(entry.iscrowd), bool(entry.ignore), mask))
        unknown |= dict.fromkeys([*self._names(image.not_exhaustive_category_ids or [], PARTIAL, where), *outside])
        negative = self._names(image.neg_category_ids or [], NEGATIVE, where)
        absent = dict.fromkeys([*negative, *(name for name in inside if name not in present and name not in unknown)])
        sides = image.width, image.height
        return Record(
            key=_image_name(image, where),
            where=where,
            present=tuple(present),
            absent=tuple(absent),
            unknown=tuple(name for name in unknown if name not in present and name not in absent),
            split=str(image.split) if image.split else self.split,
            group=None if image.group in (None, "") else str(image.group),
            things=tuple(things),
            size=sides if all(isinstance(side, int) and side > 0 for side in sides) else None,
        )


def _identity(value: Any, key: str, where: str) -> Any:
    """A number or a text that identifies something."""
    if not isinstance(value, (int, float, str)):
        raise DataError(f"{where}: {key!r} is {'missing' if value is None else 'no number'}; fill it in")
    return value


def _image_name(image: Image, where: str) -> str:
    if isinstance(image.file_name, str) and image.file_name.strip():
        return image.file_name.strip().replace("\\", "/")
    if isinstance(image.coco_url, str) and "/" in image.coco_url:  # LVIS has nothing else: …/train2017/000000000009.jpg
        return "/".join(urlsplit(image.coco_url).path.split("/")[-2:]).lstrip("/")
    raise DataError(f"{where}: neither 'file_name' nor 'coco_url' names its file; fill one in")


def _sniff(path: Path) -> str:
    files = label_files(path)
    if not files:
        return ""
    shown = files[0].name if path.is_file() else str(files[0].relative_to(path))
    return shown + (f" and {len(files) - 1} more" if len(files) > 1 else "")


FORMAT = Format("coco", "COCO", _sniff, read_coco)

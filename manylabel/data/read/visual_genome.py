"""Visual Genome: objects.json with the named boxes of every image, image_data.json with the sizes of the images.

Its names run into the ten thousands, most of them for a handful of images. As in VG-500 (Chen et al., Learning
Semantic-Specific Graph Representation for Multi-Label Image Recognition, ICCV 2019) the 500 most frequent are labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.places import image_root
from manylabel.data.read.text_file import first_item, json_items, json_kind
from manylabel.data.record import Box, Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.data.walk import ImageIndex
from manylabel.error import DataError
from manylabel.labels import label_key

OBJECTS, SIZES = "objects.json", "image_data.json"
MOST_LABELS = 500
FARTHEST = 1e6  # pixels; what is beyond is a mistake


class GivenObject(TypedDict, total=False):
    """An object as strangers give it: nothing is known of its values until they are looked at."""

    object_id: object
    id: object  # the same in version 1.0
    names: object
    x: object
    y: object
    w: object
    h: object


def open_visual_genome(path: Path, config: DataConfig) -> Reading:
    """objects.json or the folder that holds it; the images lie below that folder as <image_id>.jpg."""
    path = path / OBJECTS if path.is_dir() else path
    notes: list[str] = []
    sizes = _sizes(path.parent / SIZES, notes)
    survey = _Survey.of(path)
    labels = survey.frequent()
    kept = set(labels)
    notes += survey.notes(kept)
    source = FileSource(image_root(path.parent, [], config, notes))
    index = ImageIndex(source.root)

    def records() -> Iterator[Record]:
        for where, image, objects in _images(path):
            if sizes is not None and image not in sizes:
                raise DataError(f"{where}: {SIZES} does not know this image; fetch both files of one version")
            named = [(name, box) for name, box in objects if name in kept]
            yield Record(
                key=index.find(str(image)) or f"{image}.jpg",
                where=where,
                present=tuple(dict.fromkeys(name for name, _ in named)),
                things=tuple(Thing(name, box) for name, box in named if box is not None),
                size=None if sizes is None else sizes[image],
            )

    return Reading(
        "visual-genome", path, source, records, labels=labels, total=survey.images, name="Visual Genome", notes=notes
    )


def _images(path: Path) -> Iterator[tuple[str, int, list[tuple[str, Box | None]]]]:
    """(place, image_id, named objects) of every image; objects without a name have the name ''."""
    if json_kind(path) == "object":
        raise DataError(f"{path}: expected a list of images at the top, [{{'image_id': …, 'objects': [...]}}, …]")
    for number, item in enumerate(json_items(path, "item"), 1):
        where = f"{path.name}, item {number}"
        entry = item if isinstance(item, dict) else {}
        image, objects = entry.get("image_id", entry.get("id")), entry.get("objects")  # 'id' in version 1.0
        if type(image) is not int:
            raise DataError(f"{where}: the image_id must be a whole number, not {image!r}")
        where = f"{path.name}, image_id {image}"
        if not isinstance(objects, list):
            raise DataError(f"{where}: 'objects' must be a list, not {objects!r}")
        yield where, image, [(_name(thing, where), _box(thing, where)) for thing in objects]


def _name(thing: Any, where: str) -> str:
    """The first name, lower-cased and stripped."""
    names = thing.get("names") if isinstance(thing, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{where}{_which(thing)}: 'names' must be a list of texts, not {names!r}")
    return label_key(names[0]) if names else ""


def _box(thing: GivenObject, where: str) -> Box | None:
    """None for an object without a box, or with one that has no area."""
    sides = [thing.get(side) for side in ("x", "y", "w", "h")]
    if all(side is None for side in sides):
        return None
    for side, value in zip("xywh", sides, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < FARTHEST:
            raise DataError(f"{where}{_which(thing)}: {side} must be a number of pixels, not {value!r}")
    left, top, width, height = map(float, sides)  # type: ignore[arg-type]
    return (left, top, left + width, top + height) if width > 0 and height > 0 else None


def _which(thing: Any) -> str:
    identity = thing.get("object_id", thing.get("id")) if isinstance(thing, dict) else None
    return "" if identity is None else f", object_id {identity}"


def _sizes(path: Path, notes: list[str]) -> dict[int, tuple[int, int]] | None:
    """image_id → (width, height)"""
    if not path.is_file():
        notes.append(f"there is no {SIZES}: nobody checks whether the boxes are inside their images")
        return None
    sizes: dict[int, tuple[int, int]] = {}
    for number, item in enumerate(json_items(path, "item"), 1):
        entry = item if isinstance(item, dict) else {}
        image, width, height = entry.get("image_id", entry.get("id")), entry.get("width"), entry.get("height")
        if type(image) is not int:
            raise DataError(f"{path.name}, item {number}: the image_id must be a whole number, not {image!r}")
        if type(width) is not int or type(height) is not int or width < 1 or height < 1:
            raise DataError(f"{path.name}, image_id {image}: width {width!r} and height {height!r} must be pixels")
        sizes[image] = (width, height)
    return sizes


@dataclass
class _Survey:
    """How many images have each name, and what is odd."""

    images: int
    counts: Counter[str]
    nameless: int
    boxless: int

    @classmethod
    def of(cls, path: Path) -> _Survey:
        found = cls(0, Counter(), 0, 0)
        for _, _, objects in _images(path):
            found.images += 1
            found.counts.update({name for name, _ in objects if name})
            found.nameless += sum(not name for name, _ in objects)
            found.boxless += sum(box is None for name, box in objects if name)
        return found

    def frequent(self) -> tuple[str, ...]:
        """The labels, sorted; of equally frequent names the first in the alphabet."""
        ranked = sorted(self.counts, key=lambda name: (-self.counts[name], name))
        return tuple(sorted(ranked[:MOST_LABELS]))

    def notes(self, kept: set[str]) -> list[str]:
        found = []
        if rare := len(self.counts) - len(kept):
            least = min(self.counts[name] for name in kept)
            found.append(
                f"labels are the {len(kept)} most frequent names, as in VG-500, each in {least} images at least; "
                f"{rare} rarer names are left out"
            )
        if self.nameless:
            found.append(f"{self.nameless} objects without a name are left out")
        if self.boxless:
            found.append(f"{self.boxless} objects have no box or one without area; their labels are kept")
        return found


def _sniff(path: Path) -> str:
    path = path / OBJECTS if path.is_dir() else path
    if path.suffix.lower() != ".json":
        return ""
    item = first_item(path)
    if not isinstance(item, dict) or type(item.get("image_id", item.get("id"))) is not int:
        return ""
    objects = item.get("objects")
    if not isinstance(objects, list) or not all(isinstance(thing, dict) and "names" in thing for thing in objects):
        return ""
    return f"{path.name} with image_id and objects"


FORMAT = Format("visual-genome", "Visual Genome", _sniff, open_visual_genome)

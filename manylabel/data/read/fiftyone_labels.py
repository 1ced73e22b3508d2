"""FiftyOne's labels.json: {"classes": [...], "labels": {"image without suffix": "cat" or ["cat", "dog"] or numbers}}."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.finder import ImageNames, names_of
from manylabel.data.read.row_value import listed_names
from manylabel.data.read.text_file import read_json
from manylabel.data.record import Reading, Record
from manylabel.error import DataError


def read_labels_json(path: Path, file: Path, config: DataConfig) -> Reading:
    """The labels by image; held in memory, as they are one object."""
    content = read_json(file)
    labels = content.get("labels")
    if not isinstance(labels, dict):
        raise DataError(f"{file}: no 'labels' with one entry for each image; export it again")
    classes = content.get("classes")
    if classes is not None:
        classes = listed_names(classes, f"{file.name}, classes")
    data = file.parent / "data"
    notes: list[str] = []
    images = ImageNames(data if data.is_dir() else file.parent, config, notes)
    places = _places(file.parent / "data.json")
    given = {name: value for name, value in labels.items() if value is not None}
    if len(given) < len(labels):
        notes.append(f"{len(labels) - len(given)} of {len(labels)} images have no label yet and are left out")
    if not classes and any(isinstance(value, int) for value in given.values()):
        notes.append("labels are numbers without names; they are called '0', '1', …")

    def records() -> Iterator[Record]:
        for name, value in given.items():
            where = f"{file.name}, {name!r}"
            key = images.key(*names_of(places.get(name, name)))
            yield Record(key, where, present=_names(value, classes, where))

    return Reading(path, images.source, records, classes or None, name=file.parent.name, notes=notes)


def _names(value: Any, classes: tuple[str, ...] | None, where: str) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    values = [entry.get("label") if isinstance(entry, dict) else entry for entry in values]
    if not classes:
        return listed_names(values, where)
    found = []
    for entry in values:
        if isinstance(entry, int) and not isinstance(entry, bool):
            if not 0 <= entry < len(classes):
                raise DataError(f"{where}: label number {entry}, but 'classes' has {len(classes)}; mend one of them")
            found.append(classes[entry])
        else:
            found += listed_names(entry, where)
    return tuple(found)


def _places(manifest: Path) -> dict[str, str]:
    """Where images are that were not copied: name → path."""
    content = read_json(manifest) if manifest.is_file() else {}
    if not isinstance(content, dict) or not all(isinstance(place, str) for place in content.values()):
        raise DataError(f"{manifest}: it must map names of images to their paths; export it again")
    return content

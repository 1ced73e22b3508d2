"""CreateML JSON: a list of {"image": "a.jpg", "annotations": [{"label", "coordinates"}]}; x and y are the centre.

Also its forms for whole images ("annotation": "cat", "labels": ["cat", "dog"]), and one file in each split's folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.image_names import ImageNames
from manylabel.data.read.row_value import corner_box, finite_numbers, listed_names
from manylabel.data.read.split_files import SplitFile, split_files
from manylabel.data.read.text_file import first_item, json_items, json_kind
from manylabel.data.record import Reading, Record, Thing
from manylabel.error import DataError

IMAGE_KEYS = ("image", "imagefilename", "filename")
LABEL_KEYS = ("annotations", "annotation", "labels", "label")
OWN_NAME = ".createml.json"  # how exporters name the file
SIDES = ("x", "y", "width", "height")


def read_createml(path: Path, config: DataConfig) -> Reading:
    """One JSON file, or a folder that has one in each of its split folders."""
    parts = [SplitFile(path)] if path.is_file() else split_files(path, _label_file)
    if not parts:
        raise DataError(f"{path} holds no CreateML file (such as train/_annotations{OWN_NAME})")
    for part in parts:
        if json_kind(part.path) != "list":
            raise DataError(f'{part.path}: a CreateML file is a list of images [{{"image": …}}, …]; export it again')
    notes: list[str] = []
    names = ImageNames(path if path.is_dir() else path.parent, config, notes)

    def records() -> Iterator[Record]:
        for part in parts:
            for number, item in enumerate(json_items(part.path, "item"), 1):
                yield _record(part, number, item, names)

    return Reading("createml", path, names.source, records, notes=notes)


def _record(part: SplitFile, number: int, item: Any, names: ImageNames) -> Record:
    where = f"{part.name}, item {number}"
    if not isinstance(item, dict):
        raise DataError(f"{where}: {brief(item)} is no object with 'image' and 'annotations'")
    name = next((item[key] for key in IMAGE_KEYS if key in item), None)
    if not isinstance(name, str) or not name.strip():
        raise DataError(f"{where}: no file name in 'image'; fill it in or delete the item")
    where += f" ({name})"
    value = next((item[key] for key in LABEL_KEYS if key in item), None)
    if value is None:
        raise DataError(f"{where}: neither 'annotations' nor 'annotation'; write \"annotations\": [] for no label")
    entries = value if isinstance(value, list) else [value]
    labels: dict[str, None] = {}
    things = []
    for place, entry in enumerate(entries, 1):
        at = f"{where}, annotation {place}"
        if not isinstance(entry, dict):
            labels.update(dict.fromkeys(listed_names(entry, at)))
            continue
        found = listed_names(entry.get("label"), at)
        if len(found) != 1:
            raise DataError(f"{at}: no 'label'; fill it in or delete the annotation")
        labels[found[0]] = None
        if entry.get("coordinates") is not None:
            things.append(Thing(found[0], _box(entry["coordinates"], at)))
    key = names.key(part.folder + name.strip(), name.strip())
    return Record(key, where, present=tuple(labels), split=part.split, things=tuple(things))


def _box(value: Any, where: str) -> tuple[float, float, float, float]:
    sides = [value.get(side) for side in SIDES] if isinstance(value, dict) else value
    x, y, width, height = finite_numbers(sides, 4, f"{where}, coordinates x, y, width, height")
    return corner_box([x - width / 2, y - height / 2, width, height], where)


def _label_file(folder: Path) -> Path | None:
    """The one that is named as exporters do, else the first that looks like one."""
    files = sorted(folder.glob("*.json"), key=lambda file: (not file.name.endswith(OWN_NAME), file.name))
    return next((file for file in files if _is_createml(file)), None)


def _is_createml(path: Path) -> bool:
    item = first_item(path)
    if not isinstance(item, dict) or not any(isinstance(item.get(key), str) for key in IMAGE_KEYS):
        return False
    if path.name.endswith(OWN_NAME):
        return True
    entries = item.get("annotations")
    if isinstance(entries, list):
        return all(isinstance(entry, dict) and "label" in entry for entry in entries)
    return set(item) <= {*IMAGE_KEYS, *LABEL_KEYS} and any(key in item for key in LABEL_KEYS)


def _sniff(path: Path) -> str:
    try:
        if path.is_file():
            return "a list of images with annotations" if path.suffix.lower() == ".json" and _is_createml(path) else ""
        parts = split_files(path, _label_file)
        return parts[0].name if parts and (parts[0].folder or parts[0].name.endswith(OWN_NAME)) else ""
    except OSError:
        return ""


FORMAT = Format("createml", "CreateML JSON", _sniff, read_createml)

"""The data.yaml of YOLO folders: the names of the classes, and which folders or lists of images are which split."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manylabel.data.read.text_file import read_text
from manylabel.data.table import SPLITS
from manylabel.error import DataError
from manylabel.storage.yaml_text import MOST_OF_LABELS, parse_yaml

SUFFIXES = (".yaml", ".yml")
USUAL_NAMES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
LARGEST = 4 << 20  # bytes: twenty thousand names take half a megabyte
SPLIT_LINE = re.compile(rf"^['\"]?({'|'.join(SPLITS)})['\"]?\s*:", re.MULTILINE)
NAMES_LINE = re.compile(r"^['\"]?(names|nc)['\"]?\s*:", re.MULTILINE)


@dataclass(frozen=True)
class DataYaml:
    """What the file says, paths as it writes them."""

    file: Path
    names: dict[int, str]
    top: str  # field 'path', before every other path; '' = none
    sets: dict[str, tuple[str, ...]]  # split → folders, or .txt files that list images
    keypoints: int  # numbers behind a box that are the joints of a pose; 0 = none
    notes: tuple[str, ...] = ()


def find_yaml(path: Path) -> Path | None:
    """The file itself, or the one at the top of a folder; DataError if there are several and none has a usual name."""
    if path.is_file():
        return path if path.suffix.lower() in SUFFIXES else None
    found = yaml_files(path) or [
        path / name for name in USUAL_NAMES if (path / name).is_file() and SPLIT_LINE.search(_text(path / name))
    ]  # one that lacks the names: they are not guessed
    if len(found) > 1 and found[0].name not in USUAL_NAMES:
        raise DataError(f"{path} holds several YOLO files ({', '.join(f.name for f in found)}); name the one to use")
    return found[0] if found else None


def yaml_files(folder: Path) -> list[Path]:
    """Those at the top of a folder that describe YOLO data, usual names first."""
    names = [name for name in os.listdir(folder) if name.lower().endswith(SUFFIXES)]
    names.sort(key=lambda name: (name not in USUAL_NAMES, name))
    return [folder / name for name in names if is_yolo_yaml(folder / name)]


def is_yolo_yaml(file: Path) -> bool:
    """Whether it names sets of images and classes; also where it is broken, so that the reader can say how."""
    if file.suffix.lower() not in SUFFIXES or not file.is_file():
        return False
    text = _text(file)
    if not (SPLIT_LINE.search(text) and NAMES_LINE.search(text)):
        return False
    try:
        values = _load(text, file)
    except DataError:
        return True
    places = [value for key, value in values.items() if key in SPLITS and value is not None]
    return any(isinstance(place, (str, list)) for place in places)


def _text(file: Path) -> str:
    """'' where it cannot be read."""
    try:
        return read_text(file) if file.stat().st_size <= LARGEST else ""
    except (DataError, OSError):
        return ""


def read_yaml(file: Path) -> DataYaml:
    """The whole file, checked."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    if size > LARGEST:
        raise DataError(f"{file} has more than {LARGEST >> 20} MiB; that is no data.yaml of YOLO")
    values = _load(read_text(file), file)
    names = _names(values.get("names"), file)
    sets: dict[str, tuple[str, ...]] = {}
    for key, split in SPLITS.items():
        if values.get(key) is not None:
            sets.setdefault(split, _places(values[key], key, file))
    if not any(sets.values()):
        raise DataError(f"{file}: neither 'train' nor 'val' names a folder of images; add 'train: images/train'")
    top = values.get("path")
    count, notes = values.get("nc"), []
    if isinstance(count, int) and count != len(names):
        notes.append(f"{file.name}: nc is {count}, but there are {len(names)} names, which are used")
    return DataYaml(file, names, top if isinstance(top, str) else "", sets, _keypoints(values, file), tuple(notes))


def _load(text: str, file: Path) -> dict[Any, Any]:
    values = parse_yaml(text, str(file), most=MOST_OF_LABELS, references=False)
    if not isinstance(values, dict):
        raise DataError(f"{file}: it must say 'train: …', 'val: …' and 'names: …', one below the other")
    return values


def _names(value: Any, file: Path) -> dict[int, str]:
    """Number of a class → its name, from a list or from {0: name}."""
    if not isinstance(value, (list, Mapping)) or not value:
        raise DataError(f"{file}: no 'names' of the classes; add 'names: [cat, dog]' in the order of their numbers")
    pairs = list(value.items() if isinstance(value, Mapping) else enumerate(value))
    found: dict[int, str] = {}
    for key, name in pairs:
        number = int(key) if isinstance(key, str) and key.isdecimal() and len(key) < 10 else key
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise DataError(f"{file}, names: every key must be the number of a class, as in '0: cat'; mend it")
        if isinstance(name, bool) or not isinstance(name, (str, int, float)) or not str(name).strip():
            hint = "yes, no, on and off need quotes" if isinstance(name, bool) else "write a text"
            raise DataError(f"{file}, names: class {number} has no name but a {type(name).__name__}; {hint}")
        found[number] = str(name).strip()
    return found


def _places(value: Any, key: str, file: Path) -> tuple[str, ...]:
    places = value if isinstance(value, list) else [value]
    if not all(isinstance(place, str) and place.strip() for place in places):
        raise DataError(f"{file}: {key!r} must be a folder of images, a .txt file that lists them, or a list of these")
    return tuple(place.strip() for place in places)


def _keypoints(values: Mapping[Any, Any], file: Path) -> int:
    shape = values.get("kpt_shape")
    if shape is None:
        return 0
    sides = shape if isinstance(shape, list) else []
    if len(sides) != 2 or not all(type(side) is int and 0 < side < 10_000 for side in sides):
        raise DataError(f"{file}: 'kpt_shape' must be two whole numbers, [joints, 2 or 3]; mend it")
    return sides[0] * sides[1]

"""Which files of a folder are COCO label files, which split each of them is, and where its images are."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.finder import escapes, is_file_name, named_root
from manylabel.data.read.split_name import split_of
from manylabel.data.read.text_file import json_kind, mentions
from manylabel.error import DataError

OTHER_KINDS = ("captions", "person_keypoints", "panoptic", "stuff", "image_info", "unlabeled")  # official, not for us
MOST_FILES = 100  # JSON files in one folder; where there are more, each is about one image


def is_coco(file: Path) -> bool:
    """An object with images and with annotations or categories; never an error."""
    if file.suffix.lower() != ".json" or json_kind(file) != "object" or not mentions(file, b'"images"'):
        return False
    return mentions(file, b'"annotations"') or mentions(file, b'"categories"')


def label_files(path: Path) -> list[Path]:
    """The COCO files at this path, best place first found; [] if there is none. Never an error."""
    if path.is_file():
        return [path] if is_coco(path) else []
    try:
        inside = sorted(path.iterdir())
    except OSError:
        return []
    splits = [folder for folder in inside if split_of(folder) and folder.is_dir()]
    for places in ([path / "annotations"], [path], splits):
        found = [file for place in places for file in _in_folder(place)]
        if found:
            return found
    return []


def _in_folder(folder: Path) -> list[Path]:
    """Its instances files; without any, whatever holds objects; without any, all of them."""
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".json")
    except OSError:
        return []
    if len(files) > MOST_FILES:
        return []
    useful = [file for file in files if not file.name.startswith(OTHER_KINDS)]
    for chosen in ([file for file in files if file.name.startswith("instances")], useful, files):
        if found := [file for file in chosen if is_coco(file)]:
            return found
    return []


def splits_of(files: Sequence[Path]) -> list[str | None]:
    """The split of each file by its name or its folder; several files must differ in it, one alone has none."""
    if len(files) == 1:
        return [None]
    found = [split_of(file) or split_of(file.parent) for file in files]
    for file, split in zip(files, found, strict=True):
        same = [other.name for other, its in zip(files, found, strict=True) if its == split]
        if len(same) > 1:
            what = f"split {split!r}" if split else "no split that their names tell"
            raise DataError(
                f"{file.parent} holds several COCO files of {what} ({', '.join(same)}); name the one to use, "
                "or keep one file for each of train, val and test"
            )
        if split is None:
            raise DataError(
                f"{file}: which split is it? Other files beside it tell by their names; name the one to use"
            )
    return found


@dataclass(frozen=True)
class ImagePlace:
    """How the name of an image in one label file becomes a key."""

    folder: str  # under the root; '' = the root itself
    flat: bool = False  # folders in the name do not count

    def key(self, name: str) -> str:
        return posixpath.join(self.folder, posixpath.basename(name) if self.flat else name)


def find_images(
    path: Path, files: Sequence[Path], samples: Sequence[list[str]], config: DataConfig, notes: list[str]
) -> tuple[Path, list[ImagePlace]]:
    """(root, place per file): where most of the sample names of each file are."""
    home = path if path.is_dir() else path.parent
    home = named_root(config) or (home.parent if home.name.lower() == "annotations" else home)
    places = [_best_place(home, file, names) for file, names in zip(files, samples, strict=True)]
    folders = dict.fromkeys(place.folder for place in places)
    if any(folders):
        notes.append(f"images are in {', '.join(f'{folder}/' if folder else './' for folder in folders)}")
    if len(folders) == 1:
        return home / places[0].folder, [ImagePlace("", place.flat) for place in places]
    return home, places


def _best_place(home: Path, file: Path, names: list[str]) -> ImagePlace:
    names = [name for name in names if is_file_name(name) and not escapes(name)]
    places = [ImagePlace(folder) for folder in _folders(home, file)]
    if any("/" in name for name in names):
        places += [ImagePlace(place.folder, flat=True) for place in places]
    return max(places, key=lambda place: sum(os.path.isfile(home / place.key(name)) for name in names))


def _folders(home: Path, file: Path) -> list[str]:
    """Folders where the images of a label file may be, the likeliest first, relative to `home`."""
    word = file.stem.rpartition("_")[2]
    own = [file.parent.relative_to(home).as_posix()] if file.parent.is_relative_to(home) else []
    inside = [entry.name for entry in sorted(home.iterdir()) if entry.is_dir()]
    deeper = [f"images/{each.name}" for each in sorted((home / "images").glob("*")) if each.is_dir()]
    usual = [*own, "", word, f"images/{word}", split_of(file) or "", "images", *inside, *deeper]
    return [each for each in dict.fromkeys("" if each == "." else each for each in usual) if (home / each).is_dir()]

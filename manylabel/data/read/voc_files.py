"""The folders of PASCAL VOC data: where the XML files, the images, the image sets and the masks are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.finder import named_root
from manylabel.data.read.split_name import split_of
from manylabel.data.read.text_file import text_lines
from manylabel.data.walk import is_folder, is_image_name
from manylabel.error import DataError

IMAGE_FOLDERS = ("JPEGImages", "images", "Images", "imgs", "data")
SAMPLE = 5000  # entries of a folder in which an XML file would have shown up
SETS = {"train": ("train",), "val": ("val", "valid"), "test": ("test",)}  # split → names of its file


@dataclass(frozen=True)
class VocFolder:
    """One folder of XML files and what belongs to it."""

    xml: Path
    images: Path
    home: Path  # with ImageSets and SegmentationObject, if there are any
    split: str | None = None  # by the name of the folder

    def files(self) -> dict[str, str]:
        """XML files by their name without suffix, sorted."""
        return {name[:-4]: name for name in sorted(_names(self.xml)) if name.lower().endswith(".xml")}

    def image_names(self) -> dict[str, list[str]]:
        """Image files by their name without suffix."""
        found: dict[str, list[str]] = {}
        for name in sorted(_names(self.images)):
            if is_image_name(name):
                found.setdefault(os.path.splitext(name)[0], []).append(name)
        return found

    def masks(self) -> set[str]:
        """Names without suffix of the images that have instance masks."""
        return {name[:-4] for name in _names(self.home / "SegmentationObject") if name.endswith(".png")}

    def sets(self) -> tuple[str, dict[str, tuple[str, str]]]:
        """(which sets these are, image → (split, place in the file)); ('', {}) where there are none."""
        for kind in ("Main", "Segmentation", "Layout", ""):
            folder = self.home / "ImageSets" / kind
            found = {split: _first_file(folder, names) for split, names in SETS.items()}
            if found["train"] is None and found["val"] is None:
                found["train"] = _first_file(folder, ("trainval",))
            files = {split: file for split, file in found.items() if file is not None}
            if members := _members(files):
                return f"ImageSets/{kind}".rstrip("/"), members
        return "", {}


def voc_folders(path: Path, config: DataConfig | None = None) -> list[VocFolder]:
    """What is at this path: VOC folders, a development kit of several years, or XML files beside their images."""
    if not path.is_dir():
        return []
    inside = [path / name for name in sorted(_names(path, folders=True)) if not name.startswith(".")]
    kit = path / "VOCdevkit"
    years = [kit / name for name in sorted(_names(kit, folders=True))]
    for homes in ([path], inside, years):
        found = [each for home in homes if (each := _official(home))]
        if found:
            break
    else:
        beside = [folder for folder in (path, *inside) if _has_xml(folder)]
        found = [VocFolder(folder, _images_of(folder, path), folder) for folder in beside]
    splits = [split_of(each.home) for each in found]
    if len(found) > 1 and all(splits):
        found = [replace(each, split=split) for each, split in zip(found, splits, strict=True)]
    root = None if config is None else named_root(config)
    return found if root is None else [_moved(each, path, root) for each in found]


def _official(home: Path) -> VocFolder | None:
    for name in ("Annotations", "annotations"):
        if _has_xml(home / name):
            images = next((home / each for each in IMAGE_FOLDERS if (home / each).is_dir()), home)
            return VocFolder(home / name, images, home)
    return None


def _images_of(folder: Path, path: Path) -> Path:
    """The folder itself, or one of images beside it."""
    if folder != path and not any(map(is_image_name, _names(folder))):
        return next((path / each for each in IMAGE_FOLDERS if (path / each).is_dir()), folder)
    return folder


def _moved(found: VocFolder, path: Path, root: Path) -> VocFolder:
    """With its images in the folder that the user names, or in the same place under it."""
    same = root / found.images.relative_to(path)
    return replace(found, images=same if same.is_dir() else root)


def _names(folder: Path, folders: bool = False, most: int | None = None) -> list[str]:
    """Names in a folder, of `most` entries at most; none where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, most) if is_folder(entry) == folders]
    except OSError:
        return []


def _has_xml(folder: Path) -> bool:
    """Whether the first XML file in it is an annotation; other programs keep XML files, too."""
    first = min((name for name in _names(folder, most=SAMPLE) if name.lower().endswith(".xml")), default=None)
    if first is None:
        return False
    try:
        with open(folder / first, "rb") as file:
            return b"<annotation" in file.read(4096)
    except OSError:
        return True  # a link that leads nowhere: reading will tell


def _first_file(folder: Path, names: Iterable[str]) -> Path | None:
    return next((file for name in names if (file := folder / f"{name}.txt").is_file()), None)


def _members(files: dict[str, Path]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for split, file in files.items():
        for number, line in enumerate(text_lines(file), 1):
            words = line.split()
            if not words:
                continue
            stem = os.path.splitext(words[0])[0] if is_image_name(words[0]) else words[0]
            where = f"{file.parent.name}/{file.name}, row {number}"
            if stem in found and found[stem][0] != split:
                raise DataError(f"{where}: {stem!r} is in {found[stem][1]}, too; an image can be in one split only")
            found[stem] = split, where
    return found

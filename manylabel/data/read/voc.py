"""PASCAL VOC: one XML file per image with the boxes of its objects, beside the images or in the official folders.

An object marked difficult counts neither way: a label whose objects in an image are all difficult is unknown there.
Pixels in the XML are numbered from 1 and the last one is part of the box; ours start at 0 and end behind the last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from manylabel.config import DataConfig
from manylabel.data.mask import VOID, LabelImage
from manylabel.data.read.row_value import number_in
from manylabel.data.read.voc_files import VocFolder, voc_folders
from manylabel.data.read.xml_file import parse_xml
from manylabel.data.record import Box, Format, Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.error import DataError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def read_voc(path: Path, config: DataConfig) -> Reading:
    """A VOC folder, a development kit with several years, or a folder of images with their XML files."""
    folders = voc_folders(path, config)
    if not folders:
        raise DataError(f"{path} holds no PASCAL VOC data: there is no Annotations/*.xml and no XML beside the images")
    root = Path(os.path.commonpath([folder.images for folder in folders]))
    notes: list[str] = []
    members = [_members(folder, config, notes) for folder in folders]

    def records() -> Iterator[Record]:
        for folder, splits in zip(folders, members, strict=True):
            images, masks = folder.image_names(), folder.masks()
            place = folder.images.relative_to(root)
            for stem, (file, split) in splits.items():
                labels = folder.home / "SegmentationObject" / f"{stem}.png" if stem in masks else None
                record = _record(folder.xml / file, images.get(stem, []), labels)
                record.key, record.split = (place / record.key).as_posix(), split
                yield record

    return Reading(path, FileSource(root), records, notes=notes)


def _members(folder: VocFolder, config: DataConfig, notes: list[str]) -> dict[str, tuple[str, str | None]]:
    """Image → (its XML file, split) of the images that count. A set may also name images without annotations."""
    kind, sets = folder.sets()
    files = folder.files()
    if sets and sets.keys().isdisjoint(files):
        notes.append(f"{kind} of {folder.home.name} names no image that is annotated; it is not used")
        sets = {}
    if not sets:
        return {stem: (file, folder.split) for stem, file in files.items()}
    notes.append(f"splits are those of {folder.home.name}/{kind}")
    images = folder.image_names()
    gone = [stem for stem in sets if stem not in files and stem not in images]
    if gone and config.missing == "error":
        more = f" (and {len(gone) - 1} more)" if len(gone) > 1 else ""
        raise DataError(
            f"{folder.home.name}/{sets[gone[0]][1]}: there is neither an image nor an XML file {gone[0]!r}{more}; mend the "
            "set, or go on without with --set data.missing=drop"
        )
    for count, what in (
        (len(gone), "images of the sets are not there"),
        (sum(stem not in files and stem in images for stem in sets), "images of the sets have no annotation"),
        (len(files.keys() - sets.keys()), f"annotated images are in none of {kind}"),
    ):
        if count:
            notes.append(f"{count} {what}; they are left out")
    return {stem: (files[stem], split) for stem, (split, _) in sets.items() if stem in files}


def _record(file: Path, images: list[str], labels: Path | None) -> Record:
    """What an XML file says; `images` have its name, and `labels` numbers the pixels of its objects."""
    tree, where = _annotation(file), f"{file.parent.name}/{file.name}"
    found = []
    for number, item in enumerate(tree.findall("object"), 1):
        at = f"{where}, object {number}"
        name = (item.findtext("name") or "").strip()
        if not name:
            raise DataError(f"{at}: it has no <name>; fill it in or delete the object")
        difficult = (item.findtext("difficult") or "").strip().lower() in ("1", "true")
        found.append((name, _box(item, name, at), difficult))
    boxes = tuple(box for _, box, _ in found)
    present = {name for name, _, difficult in found if not difficult}
    given = (tree.findtext("filename") or "").strip().replace("\\", "/").rpartition("/")[2]
    return Record(
        key=given if given in images or (not images and given) else (images or [f"{file.stem}.jpg"])[0],
        where=where,
        present=tuple(sorted(present)),
        unknown=tuple(sorted({name for name, _, _ in found} - present)),
        things=tuple(
            Thing(
                name,
                box,
                difficult=difficult,
                mask=None if labels is None or number >= VOID else LabelImage(labels, number, boxes),
            )
            for number, (name, box, difficult) in enumerate(found, 1)
        ),
        size=_size(tree),
    )


def _annotation(file: Path) -> Element:
    tree = parse_xml(file)
    if tree.tag != "annotation":
        raise DataError(f"{file}: <{tree.tag}> where a PASCAL VOC file has <annotation>; is it of another format?")
    return tree


def _size(tree: Element) -> tuple[int, int] | None:
    """(width, height) where the file tells."""
    try:
        width, height = (int(float(tree.findtext(f"size/{side}") or 0)) for side in ("width", "height"))
    except (ValueError, OverflowError):
        return None
    return (width, height) if 0 < width < 1 << 31 and 0 < height < 1 << 31 else None


def _box(item: Element, name: str, where: str) -> Box:
    frame = item.find("bndbox")
    if frame is None:
        raise DataError(f"{where} ({name}): it has no <bndbox>; draw its box or delete the object")
    left, top, right, bottom = (number_in(frame.findtext(c), f"{where} ({name}), <{c}>") for c in CORNERS)
    if left > right or top > bottom:
        raise DataError(
            f"{where} ({name}): the box ends at ({right:g}, {bottom:g}) before it begins ({left:g}, {top:g})"
        )
    return left - 1, top - 1, right, bottom


def _sniff(path: Path) -> str:
    folders = voc_folders(path)
    if not folders:
        return ""
    shown = "*.xml" if folders[0].xml == path else f"{folders[0].xml.relative_to(path).as_posix()}/*.xml"
    return shown + (f" and {len(folders) - 1} more folders" if len(folders) > 1 else "")


FORMAT = Format("voc", "PASCAL VOC", _sniff, read_voc)

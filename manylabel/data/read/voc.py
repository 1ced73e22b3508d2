"""PASCAL VOC: one XML file per image with the boxes of its objects, beside the images or in the official folders.

An object marked difficult counts neither way: a label whose objects in an image are all difficult is unknown there.
Pixels in the XML are numbered from 1 and the last one is part of the box; ours start at 0 and end behind the last.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from manylabel.config import DataConfig
from manylabel.data.mask import VOID, LabelImage
from manylabel.data.read.format import Format
from manylabel.data.read.voc_files import VocFolder, voc_folders
from manylabel.data.read.xml_file import parse_xml
from manylabel.data.record import Box, Reading, Record, Thing
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
    voc = _Voc(root, config)
    for folder in folders:
        voc.read(folder)
    return Reading(
        "voc",
        path,
        FileSource(root),
        voc.records,
        labels=tuple(sorted(voc.labels)),
        total=len(voc.keys),
        notes=voc.notes,
    )


class _Voc:
    """What all XML files say, in columns: 17,000 of them are parsed once and take a few megabytes."""

    def __init__(self, root: Path, config: DataConfig) -> None:
        self.root = root
        self.config = config
        self.notes: list[str] = []
        self.labels: dict[str, int] = {}  # name → number, in the order found
        self.keys: list[str] = []
        self.splits: list[str | None] = []
        self.xml: list[Path] = []
        self.mask_of: list[Path | None] = []
        self.size = array("i")  # width, height; 0 = not told
        self.end = array("q")  # of the objects of each image
        self.label = array("i")
        self.box = array("d")
        self.difficult = array("b")

    # --- reading -----------------------------------------------------------------------------------------------

    def read(self, folder: VocFolder) -> None:
        kind, members = folder.sets()
        images, masks, files = folder.image_names(), folder.masks(), folder.files()
        stems = list(files)
        if members and members.keys().isdisjoint(stems):
            self.notes.append(f"{kind} of {folder.home.name} names no image that is annotated; it is not used")
            members = {}
        if members:
            stems = self._chosen(folder, kind, members, stems, images)
        place = folder.images.relative_to(self.root)
        for stem in stems:
            file = folder.xml / files[stem]
            self.keys.append((place / self._parse(file, images.get(stem, []))).as_posix())
            self.splits.append(members[stem][0] if members else folder.split)
            self.xml.append(file)
            self.mask_of.append(folder.home / "SegmentationObject" / f"{stem}.png" if stem in masks else None)

    def _chosen(
        self, folder: VocFolder, kind: str, members: dict[str, tuple[str, str]], stems: list[str], images: dict
    ) -> list[str]:
        """The annotated images that a set names; a set may also name images without annotations, as for a contest."""
        annotated = set(stems)
        self.notes.append(f"splits are those of {folder.home.name}/{kind}")
        gone = [stem for stem in members if stem not in annotated and stem not in images]
        if gone and self.config.missing == "error":
            raise DataError(
                f"{folder.home.name}/{members[gone[0]][1]}: there is neither an image nor an XML file {gone[0]!r}"
                f"{f' (and {len(gone) - 1} more)' if len(gone) > 1 else ''}; mend the set, or go on without with "
                "--set data.missing=drop"
            )
        bare = sum(stem not in annotated and stem in images for stem in members)
        for count, what in (
            (len(gone), "images of the sets are not there"),
            (bare, "images of the sets have no annotation"),
            (len(annotated - members.keys()), f"annotated images are in none of {kind}"),
        ):
            if count:
                self.notes.append(f"{count} {what}; they are left out")
        return [stem for stem in members if stem in annotated]

    def _parse(self, file: Path, images: list[str]) -> str:
        """Keep what a file says; the name of its image."""
        tree = _annotation(file)
        self.size.extend(_size(tree))
        for number, item in enumerate(tree.findall("object"), 1):
            where = f"{file.parent.name}/{file.name}, object {number}"
            name = (item.findtext("name") or "").strip()
            if not name:
                raise DataError(f"{where}: it has no <name>; fill it in or delete the object")
            self.label.append(self.labels.setdefault(name, len(self.labels)))
            self.box.extend(_box(item, name, where))
            self.difficult.append((item.findtext("difficult") or "").strip().lower() in ("1", "true"))
        self.end.append(len(self.label))
        given = (tree.findtext("filename") or "").strip().replace("\\", "/").rpartition("/")[2]
        return given if given in images or (not images and given) else (images or [f"{file.stem}.jpg"])[0]

    # --- records -----------------------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        names = list(self.labels)
        for row, key in enumerate(self.keys):
            first, last = self.end[row - 1] if row else 0, self.end[row]
            found = range(first, last)
            present = {names[self.label[i]] for i in found if not self.difficult[i]}
            unknown = {names[self.label[i]] for i in found} - present
            width, height = self.size[2 * row : 2 * row + 2]
            file = self.xml[row]
            yield Record(
                key=key,
                where=f"{file.parent.name}/{file.name}",
                present=tuple(sorted(present)),
                unknown=tuple(sorted(unknown)),
                split=self.splits[row],
                things=tuple(self._things(row, found, names)),
                size=(width, height) if width > 0 and height > 0 else None,
            )

    def _things(self, row: int, found: range, names: list[str]) -> Iterator[Thing]:
        boxes: list[Box] = [tuple(self.box[4 * i : 4 * i + 4]) for i in found]  # type: ignore[misc]
        masks = self.mask_of[row]
        for number, (i, box) in enumerate(zip(found, boxes, strict=True), 1):
            yield Thing(
                label=names[self.label[i]],
                box=box,
                difficult=bool(self.difficult[i]),
                mask=None if masks is None or number >= VOID else LabelImage(masks, number, tuple(boxes)),
            )


def _annotation(file: Path) -> Element:
    tree = parse_xml(file)
    if tree.tag != "annotation":
        raise DataError(f"{file}: <{tree.tag}> where a PASCAL VOC file has <annotation>; is it of another format?")
    return tree


def _size(tree: Element) -> tuple[int, int]:
    """(width, height), zeros where the file does not tell."""
    try:
        width, height = (int(float(tree.findtext(f"size/{side}") or 0)) for side in ("width", "height"))
    except (ValueError, OverflowError):
        return 0, 0
    return (width, height) if 0 < width < 1 << 31 and 0 < height < 1 << 31 else (0, 0)


def _box(item: Element, name: str, where: str) -> Box:
    frame = item.find("bndbox")
    if frame is None:
        raise DataError(f"{where} ({name}): it has no <bndbox>; draw its box or delete the object")
    values = []
    for corner in CORNERS:
        text = frame.findtext(corner)
        try:
            value = float(text or "")
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DataError(f"{where} ({name}): <{corner}> is {text!r}, not a number; mend it")
        values.append(value)
    left, top, right, bottom = values
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

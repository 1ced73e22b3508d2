"""A folder per label, with folders for the splits above them (as ImageNet has it) or without.

An image that lies in several of them has all their labels: copies are recognised by their bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read.distinct_names import distinct_names, shared_names
from manylabel.data.read.same_content import same_content
from manylabel.data.read.split_file import is_split_file
from manylabel.data.read.synsets import INDEX, SYNSET, find_synset_file, read_synsets
from manylabel.data.record import Format, Reading, Record
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS
from manylabel.data.walk import NOT_OURS, is_folder, is_image_name, walk_images
from manylabel.error import DataError

LABEL_FILES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xml")
NO_LABELS = {"images", "imgs", "jpegimages"}  # what folders of pictures are called, but never a label
GLANCE = 2000  # entries of a folder, and
MOST_FOLDERS = 100  # folders looked at to recognise the format
MOST_NAMED = 10  # how many pairs of files an error lists
MOST_SHOWN = 5  # folders that a note names


@dataclass(frozen=True)
class _Layout:
    """Which folders directly below the root are splits and which are labels."""

    splits: frozenset[str]
    labels: frozenset[str]
    unclear: bool = False  # 'train' may be either

    @classmethod
    def of(cls, direct: set[str], deep: set[str]) -> _Layout:
        """From the folders that hold images themselves, and those that hold folders with images."""
        folders = direct | deep
        named = {name for name in folders if name.lower() in SPLITS}
        others = folders - named
        if not named & deep:  # 'train' with images in it is a label beside 'bus', but no label beside 'val'
            return cls(frozenset(), frozenset(folders if any(map(_may_be_label, others)) else ()))
        two = len({SPLITS[name.lower()] for name in named}) > 1
        return cls(frozenset(named), frozenset(), unclear=bool(others) and not two)

    def place(self, key: str) -> tuple[str | None, str] | None:
        """(split, label) of an image; None for one that is in no folder of a label."""
        parts = key.split("/")
        if parts[0] in self.labels and len(parts) > 1:
            return None, parts[0]
        if parts[0] in self.splits and len(parts) > 2:
            return parts[0], parts[1]
        return None


def _may_be_label(name: str) -> bool:
    """'train2017' is a split without labels."""
    return name.lower().rstrip("0123456789_- ") not in SPLITS


def open_folders(path: Path, config: DataConfig) -> Reading:
    """A folder; all images below a label's folder belong to it, however deep."""
    if not path.is_dir():
        raise DataError(f"{path} is a file; name the folder that holds one folder per label")
    found = list(walk_images(path))
    parts = [key.split("/") for key in found]
    layout = _Layout.of({part[0] for part in parts if len(part) == 2}, {part[0] for part in parts if len(part) > 2})
    if layout.unclear:
        split = min(layout.splits)
        raise DataError(
            f"{path}: is {split}/ a split or a label? It holds folders with images, and others with images are beside "
            f"it; move these away, or put the images of the label {split!r} directly into {split}/"
        )
    placed = [(key, place) for key in found if (place := layout.place(key)) is not None]
    if not placed:
        raise DataError(
            f"{path} has no folder per label with images in it; expected <label>/<image> or train/<label>/<image>"
        )
    notes: list[str] = []
    names = _names(path, {place[1] for _, place in placed}, notes)
    notes += _odd_folders(path, layout, found, [key for key, _ in placed])
    labels, dropped = _copies(path, placed, notes)
    if len(found) > len(placed):
        notes.append(f"{len(found) - len(placed)} images outside the folders of labels are left out")

    def records() -> Iterator[Record]:
        for i, (key, (split, label)) in enumerate(placed):
            if i not in dropped:
                present = labels.get(i, (label,))
                yield Record(key, f"{path.name}/{key}", tuple(names[folder] for folder in present), split=split)

    return Reading(path, FileSource(path), records, tuple(sorted(names.values())), notes=notes)


def _odd_folders(path: Path, layout: _Layout, found: list[str], placed: list[str]) -> list[str]:
    """Notes on folders that somebody may have meant as labels, but that are none."""
    level = 1 if layout.splits else 0  # of the label in a path
    notes = []
    deeper = sorted({parts[level + 1] for parts in (key.split("/") for key in placed) if len(parts) > level + 2})
    if len(deeper) > 1:
        notes.append(f"folders below the labels are not labels of their own: {_shown(deeper)}")
    filled = {"/".join(key.split("/")[: level + 1]) for key in found}
    above = [f"{split}/" for split in sorted(layout.splits)] or [""]
    places = [start + name for start in above for name in _Glance.at(path / start, most=None).folders]
    empty = [place for place in places if place not in filled]
    if empty:
        notes.append(f"{len(empty)} folders hold no image: {_shown(empty)}")
    return notes


def _shown(names: list[str]) -> str:
    return ", ".join(names[:MOST_SHOWN]) + (", …" if len(names) > MOST_SHOWN else "")


def _names(path: Path, folders: set[str], notes: list[str]) -> dict[str, str]:
    """folder → label: its own name, or what an ImageNet id means."""
    ids = {folder for folder in folders if SYNSET.fullmatch(folder)}
    words = find_synset_file(path) if ids else None
    if words is None:
        return {folder: folder for folder in folders}
    known = read_synsets(words)
    meaning = {folder: known.get(folder, folder) for folder in sorted(folders)}
    names = distinct_names(meaning)
    notes.append(f"names of the labels are from {words.name}")
    if shared := shared_names(meaning, names):
        notes.append(f"{len(shared)} names belong to several ids and carry them in brackets: {', '.join(shared[:3])}")
    if strange := sorted(ids - known.keys()):
        notes.append(f"{len(strange)} folders are not in {words.name} and keep their ids: {', '.join(strange[:3])}")
    return names


def _copies(
    root: Path, placed: list[tuple[str, tuple[str | None, str]]], notes: list[str]
) -> tuple[dict[int, tuple[str, ...]], set[int]]:
    """Of images that lie in the folders of several labels: (position of the first file → all its labels, positions of the
    others). Copies in two splits are an error; copies in one label's folder stay what they are, two images."""
    labels: dict[int, tuple[str, ...]] = {}
    dropped: set[int] = set()
    leaks = []
    for group in same_content(root, [key for key, _ in placed]):
        splits = [SPLITS[split.lower()] if split else None for split, _ in (placed[i][1] for i in group)]
        found = {placed[i][1][1] for i in group}
        if len(set(splits)) > 1:
            other = next(i for i, split in zip(group, splits, strict=True) if split != splits[0])
            leaks.append((placed[group[0]][0], placed[other][0]))
        elif len(found) > 1:
            labels[group[0]] = tuple(sorted(found))
            dropped.update(group[1:])
    if leaks:
        raise DataError(_leaked(root, leaks))
    notes.append(
        f"{len(labels)} images stand in several folders; merged by content" if labels else "one label per image"
    )
    return labels, dropped


def _leaked(root: Path, leaks: list[tuple[str, str]]) -> str:
    listed = "\n".join(f"  {a} and {b}" for a, b in leaks[:MOST_NAMED])
    more = f"\n  and {len(leaks) - MOST_NAMED} more" if len(leaks) > MOST_NAMED else ""
    return (
        f"{root}: {len(leaks)} images are in two splits, so they would be judged on what was learned by heart; delete "
        f"one of each:\n{listed}{more}"
    )


# --- recognising ------------------------------------------------------------------------------------------------


def _sniff(path: Path) -> str:
    try:
        return _recognised(path) if path.is_dir() else ""
    except OSError:
        return ""


def _recognised(path: Path) -> str:
    top = _Glance.at(path, most=None)
    inside = {name: _Glance.at(path / name) for name in top.folders[:MOST_FOLDERS]}
    if any(glance.label_file for glance in (top, *inside.values())):
        return ""
    direct = {name for name, glance in inside.items() if glance.image}
    deep = {name for name, glance in inside.items() if any(_holding(path / name, glance.folders))}
    layout = _Layout.of(direct, deep)
    if layout.splits:
        labels = {label for name in layout.splits for label in islice(_holding(path / name, inside[name].folders), 2)}
        example = " and ".join(f"{name}/<label>/" for name in sorted(layout.splits))
        looked_at = [path / name / label for name in layout.splits for label in inside[name].folders[:MOST_FOLDERS]]
        if len(labels) < 2 or any(_Glance.at(folder).label_file for folder in looked_at):
            return ""
        return f"folders {example}"
    if len(layout.labels) < 2 or any(name.lower() in NO_LABELS for name in layout.labels):
        return ""
    return f"one folder per label: {', '.join(sorted(layout.labels)[:3])}{', …' if len(layout.labels) > 3 else ''}"


def _holding(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Those of the folders inside that hold an image, directly or deeper."""
    return (name for name in names if next(walk_images(folder / name), None) is not None)


@dataclass(frozen=True)
class _Glance:
    """What the first entries of a folder are."""

    image: bool
    label_file: bool
    folders: list[str]

    @classmethod
    def at(cls, folder: Path, most: int | None = GLANCE) -> _Glance:
        with os.scandir(folder) as entries:
            seen = [(entry.name, is_folder(entry)) for entry in islice(entries, most)]
        files = [name for name, is_folder in seen if not is_folder]
        return cls(
            image=any(map(is_image_name, files)),
            label_file=any(
                name.lower().endswith(LABEL_FILES) and name != INDEX and not is_split_file(folder / name)
                for name in files
            ),
            folders=sorted(name for name, is_folder in seen if is_folder and name[0] != "." and name not in NOT_OURS),
        )


FORMAT = Format("folders", "folders of images, one per label", _sniff, open_folders)

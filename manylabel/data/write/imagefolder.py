"""Hugging Face imagefolder: images with a metadata.jsonl, one in the folder of each split."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from manylabel.data.record import Record, Thing
from manylabel.data.write.held import Tally, tri_state
from manylabel.data.write.place_images import ImagePlacer
from manylabel.data.write.taken import placed
from manylabel.data.write.target import Content, Target
from manylabel.error import DataError
from manylabel.storage.json_text import to_json
from manylabel.storage.receipt import replacing_ours, write_ours

FOLDERS = {"train": "train", "val": "validation", "test": "test"}  # as the datasets library looks for them
METADATA = "metadata.jsonl"
LABELS = ("labels.txt", "labels.json")
FILES = (METADATA, f"*/{METADATA}", *LABELS)


@dataclass
class _Plan:
    """What a first pass over the records finds: every row of a data set must have the same fields."""

    splits: list[str] = field(default_factory=list)
    without_split: str = ""  # place of the first record that has none
    filled: dict[str, set[str | None]] = field(default_factory=dict)  # optional field → splits where it says something
    in_split_folders: bool = True  # every key begins with the folder of its split
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def of(cls, content: Content) -> _Plan:
        plan = cls()
        for record in content.records:
            plan.tally.add(record)
            if record.split is None:
                plan.without_split = plan.without_split or record.where
            elif record.split not in plan.splits:
                plan.splits.append(record.split)
            plan.in_split_folders &= record.key.startswith(f"{FOLDERS.get(record.split or '', '')}/")
            for name, value in _optional(record, content.rest, False).items():
                plan.filled.setdefault(name, set())
                if value:
                    plan.filled[name].add(record.split)
        if plan.splits and plan.without_split:
            raise DataError(f"{plan.without_split}: the image is in no split while others are; give it one")
        return plan


def write_imagefolder(content: Content, path: Path) -> list[str]:
    """Into the folder `path`; images left where they are give one metadata file with a split field instead."""
    plan = _Plan.of(content)
    by_folder = bool(plan.splits) and content.images != "leave"
    folders = {split: path / FOLDERS[split] if by_folder else path for split in plan.splits} or {"": path}
    placers = {
        split: ImagePlacer(content.source, folder, content.images, content.taken) for split, folder in folders.items()
    }
    with ExitStack() as stack:
        files: dict[Path, TextIO] = {}
        for folder in dict.fromkeys(folders.values()):
            temporary = stack.enter_context(replacing_ours(folder / METADATA))
            files[folder] = stack.enter_context(open(temporary, "w", encoding="utf-8", newline="\n"))

        def place(record: Record) -> str:
            return _placed(placers[record.split or ""], record, strip=by_folder and plan.in_split_folders)

        for record, name in placed(content.records, place, content.taken):
            row = _row(record, content, plan) | ({"split": record.split} if plan.splits and not by_folder else {})
            row["file_name"] = name
            files[folders[record.split or ""]].write(to_json(row, indent=None) + "\n")
    return [*next(iter(placers.values())).note(), *_notes(content, plan, path)]


def _placed(placer: ImagePlacer, record: Record, strip: bool) -> str:
    """The image in the folder of its split: train/a.jpg does not become train/train/a.jpg."""
    if not strip:
        return placer.place(record.key)
    folder = f"{FOLDERS[record.split or '']}/"
    outside = ImagePlacer(placer.source, placer.folder.parent, placer.how, placer.taken)
    return outside.place(record.key).removeprefix(folder)


def _optional(record: Record, rest: int, flags: bool) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if record.group is not None:
        more["group"] = record.group
    if record.things:
        more["objects"] = _objects(record.things, flags)
    return {**tri_state(record, rest), **more}


def _objects(things: tuple[Thing, ...], flags: bool) -> dict[str, list[Any]]:
    corners = [thing.box for thing in things]
    objects: dict[str, list[Any]] = {
        "bbox": [[left, top, right - left, bottom - top] for left, top, right, bottom in corners],
        "categories": [thing.label for thing in things],
    }
    if flags:
        objects["iscrowd"] = [thing.crowd for thing in things]
        objects["difficult"] = [thing.difficult for thing in things]
    return objects


def _row(record: Record, content: Content, plan: _Plan) -> dict[str, Any]:
    empty: dict[str, Any] = {name: None if name == "group" else [] for name in plan.filled}
    if "objects" in empty:
        empty["objects"] = _objects((), plan.tally.flagged > 0)
    filled = _optional(record, content.rest, plan.tally.flagged > 0)
    return {"file_name": "", "labels": list(record.present), **empty, **filled}


def _notes(content: Content, plan: _Plan, path: Path) -> list[str]:
    notes = plan.tally.notes("an imagefolder", flags_are_kept=True)
    if content.labels.names != tuple(sorted(plan.tally.names)):  # an imagefolder has no list of labels
        names = list(content.labels)
        lines = all(name.splitlines() == [name] and name.strip() == name for name in names)
        file = path / LABELS[0 if lines else 1]
        write_ours(file, "".join(f"{name}\n" for name in names) if lines else to_json(names))
        notes.append(
            f"{file.name} has all {len(names)} labels in their order; keep it by reading with --set data.labels={file}"
        )
    partly = [name for name, splits in plan.filled.items() if splits and len(splits) < len(plan.splits)]
    if partly:
        notes.append(
            f"{', '.join(partly)}: not in every split, so load_dataset takes one split at a time "
            '(data_files={"train": "train/**"})'
        )
    return notes


TARGET = Target("imagefolder", "Hugging Face imagefolder", write_imagefolder, FILES, images="link")

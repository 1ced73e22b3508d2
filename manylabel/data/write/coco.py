"""COCO: one JSON file, or a folder with annotations/instances_<split>.json and images/.

What COCO itself does not know is kept in keys that its tools pass over: 'split' and 'group' of an image; LVIS's
'not_exhaustive_category_ids' for unknown labels, or where most are unknown 'neg_category_ids' for the absent ones;
'ignore': 1 of a difficult object. A label without a box becomes an annotation without 'bbox': no box is invented.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from manylabel.data.mask import AnyMask, Polygons
from manylabel.data.read.coco import NEGATIVE, PARTIAL
from manylabel.data.record import Record, Thing
from manylabel.data.write.place_images import ImagePlacer
from manylabel.data.write.taken import placed
from manylabel.data.write.target import Content, Target
from manylabel.error import DataError, DecodeError
from manylabel.labels import UNKNOWN
from manylabel.storage.receipt import replacing_ours

_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
Entry = dict[str, Any]  # one of 'images', 'annotations', 'categories'
DECIMALS = (2, 3)  # of a corner, tried before its float32 is written out in full


def write_coco(content: Content, path: Path) -> list[str]:
    """To `path` if it ends in .json, else to annotations/instances_<split>.json in the folder `path`, one per split."""
    single = path.suffix.lower() == ".json"
    placer = ImagePlacer(content.source, (path.parent if single else path) / "images", content.images, content.taken)
    notes = placer.note()
    writer = _Writer(content)
    with ExitStack() as stack:
        files: dict[Path, _File] = {}
        entries = placed(content.records, lambda record: placer.place(record.key), content.taken)
        for number, (record, name) in enumerate(entries, 1):
            part = f"instances_{record.split}.json" if record.split else "instances.json"
            target = path if single else path / "annotations" / part
            if target not in files:
                files[target] = stack.enter_context(_File(stack.enter_context(replacing_ours(target))))
            files[target].add(writer.image(record, name, number), writer.annotations(record, number))
        if not single:
            _refuse_others(path / "annotations", files)
        categories: list[Entry] = [
            {"id": i, "name": name, "supercategory": name} for i, name in enumerate(content.labels, 1)
        ]
        for file in files.values():
            file.finish(categories)
    return notes + [f"{count} {what}" for what, count in writer.odd.items()]


def _refuse_others(folder: Path, written: dict[Path, _File]) -> None:
    """Older files beside the new ones would be read together with them."""
    others = [file.name for file in sorted(folder.glob("instances*.json")) if file not in written]
    if others:
        raise DataError(f"{folder} already holds {', '.join(others)}, which would be mixed up with this data; "
                        "write to another folder, or delete it first")  # fmt: skip


class _File:
    """A COCO file that grows: images go straight into it, annotations wait in a temporary file for their turn."""

    def __init__(self, path: Path) -> None:
        self.out: IO[str] = open(path, "w", encoding="utf-8")  # noqa: SIM115 (closed by __exit__)
        self.waiting: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", prefix="manylabel-")  # noqa: SIM115
        self.images = self.annotations = 0
        self.out.write('{"info": {"description": "written by manylabel"}, "images": [')

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self.out.close()
        self.waiting.close()

    def add(self, image: Entry, annotations: Iterator[Entry]) -> None:
        self.out.write((",\n" if self.images else "\n") + _text(image))
        self.images += 1
        for entry in annotations:
            self.waiting.write((",\n" if self.annotations else "\n") + _text(entry))
            self.annotations += 1

    def finish(self, categories: list[Entry]) -> None:
        self.out.write('\n], "annotations": [')
        self.waiting.seek(0)
        shutil.copyfileobj(self.waiting, self.out, 1 << 20)
        self.out.write(f'\n], "categories": {_text(categories)}}}\n')
        self.out.flush()


class _Writer:
    """Records as entries of 'images' and 'annotations'."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.number = {name: i for i, name in enumerate(content.labels, 1)}
        self.written = 0  # annotations
        self.odd: Counter[str] = Counter()  # what a person should know → how often
        self.size: tuple[int, int] | None = None  # of the image that is being written

    def image(self, record: Record, name: str, number: int) -> Entry:
        entry: Entry = {"id": number, "file_name": name}
        self.size = record.size or self._measured(record.key)
        if self.size is not None:
            entry |= {"width": self.size[0], "height": self.size[1]}
        if self.content.rest == UNKNOWN:
            entry[NEGATIVE] = self._numbers(record.absent)
        elif record.unknown:
            entry[PARTIAL] = self._numbers(record.unknown)
        if record.split:
            entry["split"] = record.split
        if record.group:
            entry["group"] = record.group
        return entry

    def _measured(self, key: str) -> tuple[int, int] | None:
        try:
            return self.content.source.describe(key)
        except (DecodeError, OSError):
            self.odd["images cannot be read and are written without width and height"] += 1
            return None

    def _numbers(self, names: tuple[str, ...]) -> list[int]:
        return [self._category(name) for name in names]

    def _category(self, name: str) -> int:
        return self.number.get(name) or self.content.labels.index(name) + 1

    def annotations(self, record: Record, image: int) -> Iterator[Entry]:
        said = (record.present, record.absent, record.unknown)
        present, absent, unknown = (set(self._numbers(names)) for names in said)
        if self.content.rest == UNKNOWN:
            unknown = set(self.number.values()) - present - absent
        shown: set[int] = set()  # labels that a reader will take as present
        for thing in record.things:
            category = self._category(thing.label)
            if not thing.difficult:
                shown.add(category)
            if category not in present and not (thing.difficult and category in unknown):
                self.odd[
                    "objects are of labels that their image does not have; reading it will change those labels"
                ] += 1
            yield self._entry(image, category) | self._object(thing)
        for category in sorted(present - shown):
            self.odd["labels have no box: tools that need boxes will refuse these annotations"] += 1
            yield self._entry(image, category)

    def _entry(self, image: int, category: int) -> Entry:
        self.written += 1
        return {"id": self.written, "image_id": image, "category_id": category, "iscrowd": 0}

    def _object(self, thing: Thing) -> Entry:
        left, top, right, bottom = map(float, thing.box)
        width, height = _extent(left, right), _extent(top, bottom)
        entry: Entry = {"bbox": [left, top, width, height], "area": width * height, "iscrowd": int(thing.crowd)}
        if thing.difficult:
            entry["ignore"] = 1
        if thing.mask is not None and (found := self._mask(thing.mask)):
            entry["segmentation"], entry["area"] = found
        return entry

    def _mask(self, mask: AnyMask) -> tuple[Any, float] | None:
        """The pixels and their area; None for a mask without pixels."""
        if isinstance(mask, Polygons):
            return [_numbers(part) for part in mask.parts], _area(mask)
        if self.size is None:
            self.odd["masks are left out because the size of their image is not known"] += 1
            return None
        from pycocotools.mask import area

        width, height = self.size
        runs = mask.run_length(height, width)
        pixels = int(area(runs))
        if not pixels:
            return None
        return {"size": runs["size"], "counts": runs["counts"].decode("ascii")}, pixels


def _extent(start: float, end: float) -> float:
    """end - start, without the tail of digits that subtraction leaves where it does not matter."""
    short = round(end - start, 3)
    return short if abs(start + short - end) < 1e-9 else end - start


def _numbers(part: np.ndarray) -> list[float]:
    """The corners in as few digits as give the same float32 again."""
    exact = part.astype(np.float64)
    for decimals in DECIMALS:
        short = exact.round(decimals)
        if np.array_equal(short.astype(np.float32), part):
            return short.tolist()
    return exact.tolist()


def _area(mask: Polygons) -> float:
    """Of the outlines together, by the shoelace formula."""
    whole = 0.0
    for part in mask.parts:
        exact = part.astype(np.float64)
        x, y = exact[0::2], exact[1::2]
        whole += abs(x[:-1] @ y[1:] - x[1:] @ y[:-1] + x[-1] * y[0] - x[0] * y[-1]) / 2
    return round(float(whole), 2)


TARGET = Target("coco", "COCO", write_coco, files=("annotations/instances*.json",), suffixes=(".json",))

"""FiftyOne folders: samples.json (FiftyOneDataset) or labels.json with data/ (FiftyOneImageClassificationDataset)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as brief
from typing import Any, TypedDict, cast

from manylabel.config import DataConfig
from manylabel.data.read.fiftyone_labels import read_labels_json
from manylabel.data.read.format import Format
from manylabel.data.read.image_names import ImageNames
from manylabel.data.read.row_value import corner_box, finite_numbers, listed_names, one_name
from manylabel.data.read.text_file import json_items, json_kind, mentions, read_json
from manylabel.data.record import Reading, Record, Thing
from manylabel.data.table import SPLITS
from manylabel.error import DataError
from manylabel.labels import ABSENT, UNKNOWN

WHOLE = ("Classifications", "Classification")  # about the image
PARTS = ("Detections", "Detection")  # about objects in it
USUAL = "ground_truth"


class GivenSample(TypedDict, total=False):
    """A sample as strangers give it: nothing is known of its values until they are looked at. Its labels are in fields of
    any name."""

    filepath: object
    tags: object
    group: object
    metadata: object
    absent_labels: object
    unknown_labels: object


class GivenLabel(TypedDict, total=False):
    """Of a whole image, or of an object in it."""

    label: object
    bounding_box: object
    iscrowd: object
    difficult: object


def read_fiftyone(path: Path, config: DataConfig) -> Reading:
    """The folder, or its samples.json or labels.json."""
    file = path if path.is_file() else path / "samples.json"
    if path.is_dir() and not file.is_file():
        file = path / "labels.json"
    if not file.is_file():
        raise DataError(f"{path} holds neither samples.json nor labels.json of FiftyOne")
    if json_kind(file) != "object":
        raise DataError(f'{file}: it must be an object {{"samples": …}} or {{"labels": …}}; export it again')
    return _read_samples(path, file, config) if mentions(file, b'"samples"') else read_labels_json(path, file, config)


@dataclass
class _Survey:
    """What a first pass finds."""

    samples: int = 0
    in_data: bool = True  # every path begins with data/
    states_absent: bool = False
    kinds: dict[str, str] = field(default_factory=dict)  # field with labels → its _cls

    def see(self, sample: GivenSample) -> None:
        self.samples += 1
        self.in_data &= str(sample.get("filepath", "")).startswith("data/")
        self.states_absent |= "absent_labels" in sample
        for name, value in sample.items():
            if isinstance(value, dict) and value.get("_cls") in (*WHOLE, *PARTS):
                self.kinds.setdefault(name, value["_cls"])

    def fields(self, kinds: tuple[str, ...], file: Path) -> str | None:
        """The field of this kind to read: 'ground_truth', or the only one that does not hold predictions."""
        found = [name for name, kind in self.kinds.items() if kind in kinds]
        if USUAL in found:
            return USUAL
        if len(self.kinds) > 1:
            found = [name for name in found if not name.startswith("pred")]
        if len(found) > 1:
            raise DataError(
                f"{file}: fields {', '.join(found)} all hold {kinds[0].lower()}; export the one to use, or name it {USUAL!r}"
            )
        return found[0] if found else None


def _read_samples(path: Path, file: Path, config: DataConfig) -> Reading:
    survey = _Survey()
    for _, sample in _samples(file):
        survey.see(sample)
    if not survey.samples:
        raise DataError(f"{file} holds no samples; there is nothing to read")
    whole, parts = survey.fields(WHOLE, file), survey.fields(PARTS, file)
    if whole is None and parts is None:
        raise DataError(f"{file}: no field with Classifications or Detections; export one of these")
    notes = [f"labels from field {' and '.join(repr(name) for name in (whole, parts) if name)}"]
    folder = file.parent / "data" if survey.in_data and (file.parent / "data").is_dir() else file.parent
    images = ImageNames(folder, config, notes)

    def records() -> Iterator[Record]:
        for where, sample in _samples(file):
            yield _record(sample, where, whole, parts, images)

    return Reading(
        "fiftyone",
        path,
        images.source,
        records,
        labels=_classes(file.parent / "metadata.json", whole or parts or ""),
        rest=UNKNOWN if survey.states_absent else ABSENT,
        total=survey.samples,
        name=file.parent.name,
        notes=notes,
    )


def _samples(file: Path) -> Iterator[tuple[str, GivenSample]]:
    for number, sample in enumerate(json_items(file, "samples.item"), 1):
        where = f"{file.name}, sample {number}"
        if not isinstance(sample, dict):
            raise DataError(f"{where}: {brief(sample)} is no sample; export it again")
        yield where, cast(GivenSample, sample)


def _record(sample: GivenSample, where: str, whole: str | None, parts: str | None, images: ImageNames) -> Record:
    name = sample.get("filepath")
    if not isinstance(name, str) or not name:
        raise DataError(f"{where}: no 'filepath'; export it again")
    where += f" ({name})"
    inside = name.removeprefix("data/")
    key = images.key(inside, name) if images.root.name == "data" else images.key(name, inside)
    given = _entries(sample, whole, "classifications", where)
    present = dict.fromkeys(_label(entry, where) for entry in given)
    absent, unknown = (listed_names(sample.get(f"{kind}_labels"), where) for kind in ("absent", "unknown"))
    found = _entries(sample, parts, "detections", where)
    size = (_size(sample) or images.size(key)) if found else _size(sample)
    group = sample.get("group")
    things = []
    for number, entry in enumerate(found, 1):
        thing = _thing(entry, size, f"{where}, detection {number}")
        if thing.label not in absent and thing.label not in unknown:
            present[thing.label] = None
        if size is not None:
            things.append(thing)
    return Record(
        key=key,
        where=where,
        present=tuple(present),
        absent=absent,
        unknown=unknown,
        split=_split(sample.get("tags"), where),
        group=group if isinstance(group, str) else None,
        things=tuple(things),
        size=size,
    )


def _entries(sample: GivenSample, name: str | None, inside: str, where: str) -> list[GivenLabel]:
    """The labels in a field; one that is missing or null has none."""
    value = sample.get(name) if name else None
    if value is None:
        return []
    entries = value.get(inside, [value] if "label" in value else []) if isinstance(value, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{where}: field {name!r} must hold a list of {inside}; export it again")
    return entries


def _label(entry: GivenLabel, where: str) -> str:
    return one_name(entry.get("label"), where, "a label without a name")


def _thing(entry: GivenLabel, size: tuple[int, int] | None, where: str) -> Thing:
    """An object; its box is in shares of the image's width and height."""
    left, top, right, bottom = corner_box(entry.get("bounding_box"), f"{where}, bounding_box")
    width, height = size or (1, 1)
    box = (left * width, top * height, right * width, bottom * height)
    return Thing(_label(entry, where), box, crowd=bool(entry.get("iscrowd")), difficult=bool(entry.get("difficult")))


def _size(sample: GivenSample) -> tuple[int, int] | None:
    facts = sample.get("metadata")
    sides = [facts.get("width"), facts.get("height")] if isinstance(facts, dict) else [None]
    if any(not isinstance(side, int) or side < 1 for side in sides):
        return None
    width, height = finite_numbers(sides, 2, "metadata")
    return int(width), int(height)


def _split(tags: Any, where: str) -> str | None:
    if tags is not None and not isinstance(tags, list):
        raise DataError(f"{where}: 'tags' must be a list of names, not {brief(tags)}; export it again")
    found = {SPLITS[tag.lower()] for tag in tags or [] if isinstance(tag, str) and tag.lower() in SPLITS}
    if len(found) > 1:
        raise DataError(f"{where}: tags {' and '.join(sorted(found))} put the image in two splits; keep one")
    return next(iter(found), None)


def _classes(path: Path, name: str) -> tuple[str, ...] | None:
    """The list of labels, where the folder has one."""
    facts = read_json(path) if path.is_file() else {}
    if not isinstance(facts, dict):
        return None
    by_field = facts.get("classes")
    info = facts.get("info")
    choices = (
        by_field.get(name) if isinstance(by_field, dict) else by_field,
        facts.get("default_classes"),
        info.get("classes") if isinstance(info, dict) else None,
    )
    return next(
        (listed_names(names, f"{path.name}, classes") for names in choices if names and isinstance(names, list)), None
    )


def _sniff(path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    if path.is_dir() or path.name == "samples.json":
        file = folder / "samples.json"
        if json_kind(file) == "object" and mentions(file, b'"samples"', b'"filepath"'):
            return "samples.json"
    if path.is_dir() or path.name == "labels.json":
        file = folder / "labels.json"
        has_images = (folder / "data").is_dir() or (folder / "data.json").is_file()
        if has_images and json_kind(file) == "object" and mentions(file, b'"labels"'):
            return "" if mentions(file, b'"annotations"', b'"categories"') else "labels.json"
    return ""


FORMAT = Format("fiftyone", "FiftyOne", _sniff, read_fiftyone)

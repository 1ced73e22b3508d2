"""FiftyOne folders: samples.json (FiftyOneDataset)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.finder import ImageNames
from manylabel.data.read.row_value import corner_box, finite_numbers, listed_names
from manylabel.data.read.text_file import decode_json, json_kind, mentions, read_json
from manylabel.data.record import Format, Reading, Record, Thing
from manylabel.data.table import SPLITS
from manylabel.error import DataError
from manylabel.labels import ABSENT, UNKNOWN

WHOLE = ("Classifications", "Classification")  # about the image
PARTS = ("Detections", "Detection")  # about objects in it
USUAL = "ground_truth"


def read_fiftyone(path: Path, config: DataConfig) -> Reading:
    """The folder, or its samples.json."""
    file = path if path.is_file() else path / "samples.json"
    if file.name == "labels.json" or not file.is_file():
        raise DataError(f"{path} holds no samples.json of FiftyOne; export it as a FiftyOneDataset")
    samples = _samples(file)
    kinds: dict[str, str] = {}  # field with labels → its _cls
    for sample in samples:
        for name, value in sample.items():
            if isinstance(value, dict) and value.get("_cls") in (*WHOLE, *PARTS):
                kinds.setdefault(name, value["_cls"])
    whole, parts = _field(kinds, WHOLE, file), _field(kinds, PARTS, file)
    if whole is None and parts is None:
        raise DataError(f"{file}: no field with Classifications or Detections; export one of these")
    notes = [f"labels from field {' and '.join(repr(name) for name in (whole, parts) if name)}"]
    in_data = all(str(sample.get("filepath", "")).startswith("data/") for sample in samples)
    folder = file.parent / "data" if in_data and (file.parent / "data").is_dir() else file.parent
    images = ImageNames(folder, config, notes)

    def records() -> Iterator[Record]:
        for number, sample in enumerate(samples, 1):
            yield _record(sample, f"{file.name}, sample {number}", whole, parts, images)

    classes = _classes(file.parent / "metadata.json", whole or parts or "")
    rest = UNKNOWN if any("absent_labels" in sample for sample in samples) else ABSENT
    return Reading(path, images.source, records, classes, rest, name=file.parent.name, notes=notes)


def _samples(file: Path) -> list[dict[str, Any]]:
    content = decode_json(file)
    if not isinstance(content, dict):
        raise DataError(f'{file}: it must be an object {{"samples": …}}; export it again')
    samples = content.get("samples")
    if not isinstance(samples, list) or not samples:
        raise DataError(f"{file} holds no samples; there is nothing to read")
    for number, sample in enumerate(samples, 1):
        if not isinstance(sample, dict):
            raise DataError(f"{file.name}, sample {number}: {brief(sample)} is no sample; export it again")
    return samples


def _field(kinds: dict[str, str], wanted: tuple[str, ...], file: Path) -> str | None:
    """The field of this kind to read: 'ground_truth', or the only one that does not hold predictions."""
    found = [name for name, kind in kinds.items() if kind in wanted]
    if USUAL in found:
        return USUAL
    if len(kinds) > 1:
        found = [name for name in found if not name.startswith("pred")]
    if len(found) > 1:
        raise DataError(
            f"{file}: fields {', '.join(found)} all hold {wanted[0].lower()}; export the one to use, or name it {USUAL!r}"
        )
    return found[0] if found else None


def _record(sample: dict[str, Any], where: str, whole: str | None, parts: str | None, images: ImageNames) -> Record:
    name = sample.get("filepath")
    if not isinstance(name, str) or not name:
        raise DataError(f"{where}: no 'filepath'; export it again")
    where += f" ({name})"
    inside = name.removeprefix("data/")
    key = images.key(inside, name) if images.root.name == "data" else images.key(name, inside)
    present = dict.fromkeys(_label(entry, where) for entry in _entries(sample, whole, "classifications", where))
    absent, unknown = (listed_names(sample.get(f"{kind}_labels"), where) for kind in ("absent", "unknown"))
    found = _entries(sample, parts, "detections", where)
    size = (_size(sample) or images.size(key)) if found else _size(sample)
    group = sample.get("group")
    things = [_thing(entry, size, f"{where}, detection {number}") for number, entry in enumerate(found, 1)]
    present |= dict.fromkeys(t.label for t in things if t.label not in absent and t.label not in unknown)
    return Record(
        key=key,
        where=where,
        present=tuple(present),
        absent=absent,
        unknown=unknown,
        split=_split(sample.get("tags"), where),
        group=group if isinstance(group, str) else None,
        things=tuple(things) if size is not None else (),
        size=size,
    )


def _entries(sample: dict[str, Any], name: str | None, inside: str, where: str) -> list[dict[str, Any]]:
    """The labels in a field; one that is missing or null has none."""
    value = sample.get(name) if name else None
    if value is None:
        return []
    entries = value.get(inside, [value] if "label" in value else []) if isinstance(value, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{where}: field {name!r} must hold a list of {inside}; export it again")
    return entries


def _label(entry: dict[str, Any], where: str) -> str:
    names = listed_names(entry.get("label"), where)
    if len(names) != 1:
        raise DataError(f"{where}: a label without a name; fill it in or delete it")
    return names[0]


def _thing(entry: dict[str, Any], size: tuple[int, int] | None, where: str) -> Thing:
    """An object; its box is in shares of the image's width and height."""
    left, top, right, bottom = corner_box(entry.get("bounding_box"), f"{where}, bounding_box")
    width, height = size or (1, 1)
    box = (left * width, top * height, right * width, bottom * height)
    return Thing(_label(entry, where), box, crowd=bool(entry.get("iscrowd")), difficult=bool(entry.get("difficult")))


def _size(sample: dict[str, Any]) -> tuple[int, int] | None:
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
    by_field, info = facts.get("classes"), facts.get("info")
    choices = (
        by_field.get(name) if isinstance(by_field, dict) else by_field,
        facts.get("default_classes"),
        info.get("classes") if isinstance(info, dict) else None,
    )
    found = (listed_names(names, f"{path.name}, classes") for names in choices if names and isinstance(names, list))
    return next(found, None)


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

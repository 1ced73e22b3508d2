"""Label Studio exports (JSON: tasks with annotations). What several annotators say is put together.

A label is present where more than half of the annotators gave it, and unknown where only some did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.finder import ImageNames, names_of
from manylabel.data.read.label_studio_config import configured_labels
from manylabel.data.read.label_studio_result import Answer, read_answer
from manylabel.data.read.row_value import listed_names
from manylabel.data.read.text_file import decode_json, first_item, json_kind
from manylabel.data.record import Format, Reading, Record
from manylabel.data.walk import is_image_name
from manylabel.error import DataError
from manylabel.labels import ABSENT, UNKNOWN

MIN_SIGNS = ("annotation_id", "annotator", "lead_time")
IMAGE_FIELDS = ("image", "img", "image_url", "url", "photo", "picture")


@dataclass
class _Tally:
    """What is to be told about the tasks."""

    disputed: int = 0  # images with a label that some annotators gave and others did not
    skipped: int = 0  # every annotation was cancelled
    shapeless: int = 0
    unused: set[str] = field(default_factory=set)


def read_label_studio(path: Path, config: DataConfig) -> Reading:
    """An exported JSON file; images are found under its folder (or data.images), never fetched."""
    if json_kind(path) != "list":
        raise DataError(f"{path}: an export of Label Studio is a list of tasks [{{…}}, …]; export it as JSON")
    notes: list[str] = []
    images = ImageNames(path.parent, config, notes)
    tasks = list(_tasks(path))
    annotated = any(task.get("annotations") for _, task in tasks) or not any(
        task.get("predictions") for _, task in tasks
    )
    source, tally = "annotations" if annotated else "predictions", _Tally()
    found = [_record(task, where, source, images, tally) for where, task in tasks]
    records = [record for record in found if record is not None]
    named = {name for record in records for name in (*record.present, *record.unknown, *record.absent)}
    notes += _notes(tally, source, len(tasks), len(records))
    rest = UNKNOWN if any("absent_labels" in task["data"] for _, task in tasks) else ABSENT
    labels = configured_labels(path.parent, named)
    return Reading(path, images.source, lambda: iter(records), labels, rest, notes=notes)


def _tasks(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, task) of every one."""
    for number, task in enumerate(decode_json(path), 1):
        where = f"{path.name}, task {number}"
        if not isinstance(task, dict):
            raise DataError(f"{where}: {brief(task)} is no task; export it again")
        if "id" in task:
            where += f" (id {task['id']})"
        if not isinstance(task.get("data"), dict):
            form = " (this is JSON-MIN, which does not tell answers from other fields)" if _is_min(task) else ""
            raise DataError(f"{where}: no 'data' with the image{form}; export it as JSON")
        if "annotations" not in task and "completions" in task:  # how old versions call them
            task["annotations"] = task["completions"]
        yield where, task


def _is_min(item: Any) -> bool:
    """The short export, with everything of an annotation at the top."""
    return isinstance(item, dict) and "data" not in item and any(sign in item for sign in MIN_SIGNS)


def _record(task: dict[str, Any], where: str, source: str, images: ImageNames, tally: _Tally) -> Record | None:
    """The task as a record; None where nobody has said anything about the image yet."""
    data = task["data"]
    key = images.key(*names_of(_image(data, where)))
    entries = task.get(source) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{where}: {source!r} must be a list of objects; export it again")
    valid = [entry for entry in entries if not entry.get("was_cancelled") and not entry.get("skipped")]
    if not valid:
        tally.skipped += bool(entries)
        return None
    if source == "predictions":
        valid = valid[:1]
    trusted = [entry for entry in valid if entry.get("ground_truth")] or valid
    answers = [
        read_answer(entry.get("result"), lambda: images.size(key), f"{where}, {source[:-1]} {number}")
        for number, entry in enumerate(trusted, 1)
    ]
    present, disputed = _together(answers)
    tally.disputed += bool(disputed)
    tally.shapeless += sum(answer.shapeless for answer in answers)
    tally.unused |= {kind for answer in answers for kind in answer.unused}
    absent, unknown = (listed_names(data.get(f"{kind}_labels"), where) for kind in ("absent", "unknown"))
    return Record(
        key=key,
        where=where,
        present=present,
        absent=tuple(name for name in absent if name not in present and name not in disputed),
        unknown=tuple(dict.fromkeys(name for name in (*disputed, *unknown) if name not in present)),
        split=data.get("split") if isinstance(data.get("split"), str) else None,
        group=data.get("group") if isinstance(data.get("group"), str) else None,
        things=tuple(answers[0].things),
        size=answers[0].size,
    )


def _together(answers: list[Answer]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(labels that more than half gave, labels that only some gave)"""
    votes = Counter(name for answer in answers for name in answer.labels)
    present = tuple(name for name in votes if 2 * votes[name] > len(answers))
    return present, tuple(name for name in votes if 2 * votes[name] <= len(answers))


def _image(data: dict[str, Any], where: str) -> str:
    for name in IMAGE_FIELDS:
        if isinstance(data.get(name), str) and data[name].strip():
            return data[name].strip()
    for value in data.values():
        if isinstance(value, str) and is_image_name(names_of(value.strip())[0]):
            return value.strip()
    raise DataError(f"{where}: 'data' holds no image (fields: {', '.join(map(str, data)) or 'none'}); add 'image'")


def _notes(tally: _Tally, source: str, tasks: int, total: int) -> list[str]:
    notes = []
    if source == "predictions":
        notes.append("no task has annotations, so its predictions are read as labels")
    if tasks > total:
        skipped = f" ({tally.skipped} of them skipped by the annotator)" if tally.skipped else ""
        notes.append(f"{tasks - total} of {tasks} tasks are not annotated and left out{skipped}")
    if tally.disputed:
        notes.append(
            f"annotators disagree on {tally.disputed} images; a label without a majority is unknown there, "
            "and boxes are those of the first annotation"
        )
    if tally.shapeless:
        notes.append(f"of {tally.shapeless} brush and other regions only the labels are used, not the shapes")
    if tally.unused:
        notes.append(f"results that are no labels are not used: {', '.join(sorted(tally.unused))}")
    return notes


def _sniff(path: Path) -> str:
    if path.suffix.lower() != ".json" or not path.is_file():
        return ""
    item = first_item(path)
    if not isinstance(item, dict):
        return ""
    if isinstance(item.get("data"), dict) and any(key in item for key in ("annotations", "predictions", "completions")):
        return "tasks with annotations" if "predictions" not in item or item.get("annotations") else "tasks"
    return "JSON-MIN" if _is_min(item) else ""


FORMAT = Format("label-studio", "Label Studio", _sniff, read_label_studio)

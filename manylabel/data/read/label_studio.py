"""Label Studio exports: JSON (tasks with annotations) and JSON-MIN. What several annotators say is put together.

A label is present where more than half of the annotators gave it, and unknown where only some did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from reprlib import repr as brief
from typing import Any, cast

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.image_names import ImageNames, names_of
from manylabel.data.read.label_studio_config import configured_labels
from manylabel.data.read.label_studio_min import full_task, is_min_item, same_image
from manylabel.data.read.label_studio_result import Answer, read_answer
from manylabel.data.read.label_studio_task import GivenTask
from manylabel.data.read.row_value import listed_names
from manylabel.data.read.text_file import first_item, json_items, json_kind
from manylabel.data.record import Reading, Record
from manylabel.data.walk import is_image_name
from manylabel.error import DataError
from manylabel.labels import ABSENT, UNKNOWN

IMAGE_FIELDS = ("image", "img", "image_url", "url", "photo", "picture")


@dataclass
class _Survey:
    """What a first pass over the tasks finds."""

    tasks: int = 0
    annotated: int = 0
    predicted: int = 0
    skipped: int = 0  # every annotation was cancelled
    disputed: int = 0  # images with a label that some annotators gave and others did not
    shapeless: int = 0
    states_absent: bool = False  # tasks carry absent_labels, so that the rest is unknown
    unused: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def read_label_studio(path: Path, config: DataConfig) -> Reading:
    """An exported JSON file; images are found under its folder (or data.images), never fetched."""
    if json_kind(path) != "list":
        raise DataError(f"{path}: an export of Label Studio is a list of tasks [{{…}}, …]; export it as JSON")
    notes: list[str] = []
    images = ImageNames(path.parent, config, notes)
    survey = _Survey()
    for _, task in _tasks(path):
        survey.tasks += 1
        survey.annotated += bool(task.get("annotations"))
        survey.predicted += bool(task.get("predictions"))
        survey.states_absent |= "absent_labels" in task["data"]
    source = "annotations" if survey.annotated or not survey.predicted else "predictions"

    def records(survey: _Survey | None = None) -> Iterator[Record]:
        for where, task in _tasks(path):
            record = _record(task, where, source, images, survey)
            if record is not None:
                yield record

    total = 0
    for record in records(survey):
        total += 1
        survey.names.update(record.present, record.unknown, record.absent)
    notes += _notes(survey, source, total)
    return Reading(
        "label-studio",
        path,
        images.source,
        records,
        labels=configured_labels(path.parent, survey.names),
        rest=UNKNOWN if survey.states_absent else ABSENT,
        total=total,
        notes=notes,
    )


def _tasks(path: Path) -> Iterator[tuple[str, GivenTask]]:
    """(place, task) in the full form; the items of JSON-MIN that are about one image become one task."""
    numbered = enumerate(json_items(path, "item"), 1)
    for _, together in groupby(numbered, key=lambda entry: same_image(entry[1]) or entry[0]):
        items = list(together)
        number, first = items[0]
        where = f"{path.name}, task {number}"
        if not isinstance(first, dict):
            raise DataError(f"{where}: {brief(first)} is no task; export it again")
        in_short = is_min_item(first)
        task = full_task([item for _, item in items], IMAGE_FIELDS) if in_short else cast(GivenTask, dict(first))
        if "id" in task:
            where += f" (id {task['id']})"
        if not isinstance(task.get("data"), dict):
            raise DataError(f"{where}: no 'data' with the image; export it as JSON or JSON-MIN")
        if "annotations" not in task and "completions" in task:  # how old versions call them
            task["annotations"] = task["completions"]
        yield where, task


def _record(task: GivenTask, where: str, source: str, images: ImageNames, survey: _Survey | None) -> Record | None:
    """The task as a record; None where nobody has said anything about the image yet."""
    data = task["data"]
    key = images.key(*names_of(_image(data, where)))
    entries = task.get(source) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{where}: {source!r} must be a list of objects; export it again")
    valid = [entry for entry in entries if not entry.get("was_cancelled") and not entry.get("skipped")]
    if not valid:
        if survey is not None:
            survey.skipped += bool(entries)
        return None
    if source == "predictions":
        valid = valid[:1]
    trusted = [entry for entry in valid if entry.get("ground_truth")] or valid
    answers = [
        read_answer(entry.get("result"), lambda: images.size(key), f"{where}, {source[:-1]} {number}")
        for number, entry in enumerate(trusted, 1)
    ]
    present, disputed = _together(answers)
    if survey is not None:
        _count(survey, answers, bool(disputed))
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


def _count(survey: _Survey, answers: Iterable[Answer], disputed: bool) -> None:
    survey.disputed += disputed
    for answer in answers:
        survey.shapeless += answer.shapeless
        survey.unused |= answer.unused


def _image(data: dict[str, Any], where: str) -> str:
    for name in IMAGE_FIELDS:
        if isinstance(data.get(name), str) and data[name].strip():
            return data[name].strip()
    for value in data.values():
        if isinstance(value, str) and is_image_name(names_of(value.strip())[0]):
            return value.strip()
    raise DataError(f"{where}: 'data' holds no image (fields: {', '.join(map(str, data)) or 'none'}); add 'image'")


def _notes(survey: _Survey, source: str, total: int) -> list[str]:
    notes = []
    if source == "predictions":
        notes.append("no task has annotations, so its predictions are read as labels")
    if survey.tasks > total:
        skipped = f" ({survey.skipped} of them skipped by the annotator)" if survey.skipped else ""
        notes.append(f"{survey.tasks - total} of {survey.tasks} tasks are not annotated and left out{skipped}")
    if survey.disputed:
        notes.append(
            f"annotators disagree on {survey.disputed} images; a label without a majority is unknown there, "
            "and boxes are those of the first annotation"
        )
    if survey.shapeless:
        notes.append(f"of {survey.shapeless} brush and other regions only the labels are used, not the shapes")
    if survey.unused:
        notes.append(f"results that are no labels are not used: {', '.join(sorted(survey.unused))}")
    return notes


def _sniff(path: Path) -> str:
    if path.suffix.lower() != ".json" or not path.is_file():
        return ""
    item = first_item(path)
    if not isinstance(item, dict):
        return ""
    if isinstance(item.get("data"), dict) and any(key in item for key in ("annotations", "predictions", "completions")):
        return "tasks with annotations" if "predictions" not in item or item.get("annotations") else "tasks"
    return "JSON-MIN" if is_min_item(item) else ""


FORMAT = Format("label-studio", "Label Studio", _sniff, read_label_studio)

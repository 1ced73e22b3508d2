"""Label Studio tasks with predictions (a person then corrects them), and the labelling config that fits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from manylabel.data.read.label_studio_config import CONFIG_NAME
from manylabel.data.record import Box, Record
from manylabel.data.write.held import Tally, image_size, shares, tri_state
from manylabel.data.write.json_list import json_list
from manylabel.data.write.place_images import ImagePlacer
from manylabel.data.write.taken import placed
from manylabel.data.write.target import Content, Target
from manylabel.error import DataError
from manylabel.storage.receipt import write_ours

Entry = dict[str, Any]  # a task, or a part of one
VERSION = "manylabel"  # what Label Studio shows as the model
LOCAL_FILES = "/data/local-files/?d="
MARK = "<!-- made by manylabel -->"
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # nor as a reference to its number
CHOICES, BOXES = "labels", "boxes"  # names of the controls in the config


def write_label_studio(content: Content, path: Path) -> list[str]:
    """To `path` if it ends in .json, else to tasks.json in the folder `path`; the config beside it."""
    file = path if path.suffix.lower() == ".json" else path / "tasks.json"
    folder = "" if content.images == "leave" else "images/"
    placer = ImagePlacer(content.source, file.parent / folder, content.images, content.taken)
    tally = Tally()
    labelling_config(content.labels, boxes=True)  # refuses what it cannot hold before anything is written
    with json_list(file) as add:
        for record, name in placed(content.records, lambda record: placer.place(record.key), content.taken):
            tally.add(record)
            add(_task(record, content, folder + name))
    write_ours(file.parent / CONFIG_NAME, labelling_config(content.labels, boxes=tally.things > 0))
    root = getattr(content.source, "root", "") if content.images == "leave" else file.parent
    return [
        *placer.note(),
        *tally.notes("Label Studio", flags_are_kept=False),
        f"paste {CONFIG_NAME} into the project's labelling interface, and start Label Studio with "
        f"LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root}",
    ]


def task_of_scores(
    image: str, scored: list[tuple[str, float, bool]], top: int | None = None, version: str = VERSION
) -> Entry:
    """A task for one image with what a model says: (label, score, whether it is above its threshold), highest score first;
    at most `top` labels are chosen.

    Its score is how sure the model is of its least certain label, so that sorting by it puts first what to look at.
    """
    chosen = [name for name, _, above in scored if above][:top]
    sure = min((score if above else 1 - score for _, score, above in scored), default=0.0)
    return _with_prediction({"image": address(image)}, [_choices(chosen)] if chosen else [], version, float(sure))


def address(name: str) -> str:
    """Where Label Studio serves a file that lies under its document root; the bytes of a name that is not UTF-8 as %ff."""
    return LOCAL_FILES + quote(name, errors="surrogateescape")


def labelling_config(labels: Iterable[str], boxes: bool) -> str:
    """The interface: the image, one choice per label, and rectangles if there are boxes."""
    names = list(labels)
    for name in names:
        if found := NOT_IN_XML.search(name):
            raise DataError(
                f"label {name!r} holds {found[0]!r}, which the XML of Label Studio's {CONFIG_NAME} cannot; rename the label"
            )
    lines = [MARK, "<View>", '  <Image name="image" value="$image"/>']
    lines += [f'  <Choices name="{CHOICES}" toName="image" choice="multiple" showInline="true">']
    lines += [f"    <Choice value={quoteattr(name)}/>" for name in names] + ["  </Choices>"]
    if boxes:
        lines += [f'  <RectangleLabels name="{BOXES}" toName="image">']
        lines += [f"    <Label value={quoteattr(name)}/>" for name in names] + ["  </RectangleLabels>"]
    return "\n".join([*lines, "</View>", ""])


def _task(record: Record, content: Content, name: str) -> Entry:
    place: Entry = {}
    if record.split is not None:
        place["split"] = record.split
    if record.group is not None:
        place["group"] = record.group
    data: Entry = {"image": address(name), **tri_state(record, content.rest), **place}
    results: list[Entry] = [_choices(list(record.present))] if record.present else []
    if record.things:
        size = image_size(record, content.source)
        results += [
            _rectangle(thing.label, shares(thing.box, size), size, number)
            for number, thing in enumerate(record.things, 1)
        ]
    return _with_prediction(data, results, VERSION)


def _with_prediction(data: Entry, results: list[Entry], version: str, score: float | None = None) -> Entry:
    prediction: Entry = {"model_version": version, "result": results}
    if score is not None:
        prediction["score"] = round(score, 6)
    return {"data": data, "predictions": [prediction]}


def _choices(names: list[str]) -> Entry:
    value: Entry = {"choices": names}
    return {"id": "choices", "type": "choices", "from_name": CHOICES, "to_name": "image", "value": value}


def _rectangle(label: str, box: Box, size: tuple[int, int], number: int) -> Entry:
    left, top, width, height = (100 * share for share in box)
    value: Entry = {
        "x": left,
        "y": top,
        "width": width,
        "height": height,
        "rotation": 0,
        "rectanglelabels": [label],
    }
    return {
        "id": f"box{number}",
        "type": "rectanglelabels",
        "from_name": BOXES,
        "to_name": "image",
        "original_width": size[0],
        "original_height": size[1],
        "image_rotation": 0,
        "value": value,
    }


TARGET = Target(
    "label-studio", "Label Studio pre-annotations", write_label_studio, ("tasks.json", CONFIG_NAME), suffixes=(".json",)
)

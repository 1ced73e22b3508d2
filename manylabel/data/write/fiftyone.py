"""A folder for `fiftyone.Dataset.from_dir(dataset_type=fiftyone.types.FiftyOneDataset)`: samples.json and data/.

FiftyOne has an older form of this folder, which it recognises by a metadata.json without a version. That one is
written, as it needs nothing of FiftyOne's database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manylabel.data.record import Record, Thing
from manylabel.data.source import FileSource
from manylabel.data.write.held import Tally, image_size, shares, tri_state
from manylabel.data.write.json_list import json_list
from manylabel.data.write.place_images import ImagePlacer
from manylabel.data.write.taken import placed
from manylabel.data.write.target import Content, Target
from manylabel.storage.json_text import to_json
from manylabel.storage.receipt import MADE_BY, write_ours


def write_fiftyone(content: Content, path: Path) -> list[str]:
    """Into the folder `path`; labels in 'ground_truth', boxes in 'detections', splits as tags."""
    placer = ImagePlacer(content.source, path / "data", content.images, content.taken)
    # FiftyOne takes a path that is not absolute as one inside its own folder
    leave = content.images == "leave" and isinstance(content.source, FileSource)
    folder = f"{content.source.root.resolve()}/" if leave else "data/"  # type: ignore[attr-defined]
    tally = Tally()
    with json_list(path / "samples.json", "samples") as add:
        for record, name in placed(content.records, lambda record: placer.place(record.key), content.taken):
            tally.add(record)
            add(_sample(record, content, folder + name))
    labels = list(content.labels)
    info = {"made_by": MADE_BY, "classes": labels}
    facts = {"media_type": "image", "info": info, "default_classes": labels}
    write_ours(path / "metadata.json", to_json(facts) + "\n")
    return [*placer.note(), *tally.notes("FiftyOne", flags_are_kept=True)]


def _sample(record: Record, content: Content, name: str) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if record.group is not None:
        extras["group"] = record.group
    if record.things:
        size = image_size(record, content.source)
        extras["metadata"] = {"_cls": "ImageMetadata", "width": size[0], "height": size[1]}
        extras["detections"] = {"_cls": "Detections", "detections": [_detection(t, size) for t in record.things]}
    return {
        "filepath": name,
        "tags": [] if record.split is None else [record.split],
        "ground_truth": {
            "_cls": "Classifications",
            "classifications": [{"_cls": "Classification", "label": label, "tags": []} for label in record.present],
        },
        **tri_state(record, content.rest),
        **extras,
    }


def _detection(thing: Thing, size: tuple[int, int]) -> dict[str, Any]:
    box = list(shares(thing.box, size))
    detection: dict[str, Any] = {"_cls": "Detection", "label": thing.label, "bounding_box": box, "tags": []}
    if thing.crowd:
        detection["iscrowd"] = 1
    if thing.difficult:
        detection["difficult"] = 1
    return detection


FILES = ("samples.json", "metadata.json")
TARGET = Target("fiftyone", "FiftyOne", write_fiftyone, FILES, images="link")

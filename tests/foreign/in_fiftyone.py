"""Runs inside FiftyOne's own environment: `load FOLDER` prints what it reads; `export SPEC OUT` writes its formats."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import fiftyone as fo

# name of the folder: (type, field with the labels)
EXPORTS = {
    "samples": ("FiftyOneDataset", None),
    "tree": ("ImageClassificationDirectoryTree", "label"),
    "coco": ("COCODetectionDataset", "detections"),
    "voc": ("VOCDetectionDataset", "detections"),
    "yolov4": ("YOLOv4Dataset", "detections"),
}


def load(folder: str) -> dict[str, Any]:
    """Labels, boxes and tags by the name of the image, and whether its file is there."""
    dataset = fo.Dataset.from_dir(dataset_dir=folder, dataset_type=fo.types.FiftyOneDataset)
    found = {}
    for sample in dataset:
        objects = sample["detections"].detections if sample.has_field("detections") and sample["detections"] else []
        found[Path(sample.filepath).name] = {
            "labels": [entry.label for entry in sample["ground_truth"].classifications],
            "boxes": [[entry.label, list(entry.bounding_box)] for entry in objects],
            "tags": list(sample.tags),
            "there": Path(sample.filepath).is_file(),
        }
    return {"images": found, "classes": dataset.default_classes}


def export(spec: str, out: str) -> dict[str, Any]:
    """Samples from {image: {labels, boxes, split}}, with all labels, the first one, and boxes; in every format."""
    wanted = json.loads(Path(spec).read_text(encoding="utf-8"))
    dataset = fo.Dataset()
    for path, told in wanted.items():
        sample = fo.Sample(filepath=path, tags=[told["split"]])
        sample["ground_truth"] = fo.Classifications(
            classifications=[fo.Classification(label=n) for n in told["labels"]]
        )
        sample["label"] = fo.Classification(label=told["labels"][0]) if told["labels"] else None
        sample["detections"] = fo.Detections(
            detections=[fo.Detection(label=label, bounding_box=box) for label, box in told["boxes"]]
        )
        dataset.add_sample(sample)
    dataset.compute_metadata()
    classes = sorted({label for told in wanted.values() for label, _ in told["boxes"]})
    for name, (kind, field) in EXPORTS.items():
        more: dict[str, Any] = {} if field is None else {"label_field": field}
        if name in ("coco", "yolov4"):
            more["classes"] = classes
        chosen = dataset.exists(field) if name == "tree" else dataset
        chosen.export(export_dir=f"{out}/{name}", dataset_type=getattr(fo.types, kind), **more)
    for split in ("train", "val"):
        dataset.match_tags(split).export(
            export_dir=f"{out}/yolov5",
            dataset_type=fo.types.YOLOv5Dataset,
            label_field="detections",
            split=split,
            classes=classes,
        )
    return {"exported": [*EXPORTS, "yolov5"]}


if __name__ == "__main__":
    answer = {"load": load, "export": export}[sys.argv[1]](*sys.argv[2:])
    print("\n" + json.dumps(answer))

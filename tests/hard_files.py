"""A data set with boxes in COCO's layout, and finished runs on it that miss small objects (or do not)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from labelled_files import put_json, table_at
from PIL import Image

from manylabel.labels import PRESENT
from manylabel.metric import average_precision
from manylabel.score_file import write_scores

NAMES = ["banana", "bed", "book", "bottle", "person", "tv"]
WIDTH, HEIGHT = 64, 48
SIDES = {"small": (3, 3), "medium": (8, 8), "large": (40, 30)}  # 0.29 %, 2.1 % and 39 % of the image


def put_boxed_data(folder: Path, train: int = 30, val: int = 90) -> Path:
    """Images with two labels each: the first is large, the second small, medium or large by turns."""
    for split, count in (("train", train), ("val", val)):
        images, annotations = [], []
        for i in range(count):
            name = f"{split}{i:03d}.jpg"
            path = folder / f"{split}2017" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (WIDTH, HEIGHT), (2 * i % 256, 90, 120)).save(path)
            images.append({"id": i, "file_name": name, "width": WIDTH, "height": HEIGHT})
            second = list(SIDES)[(i // 6) % 3]
            for label, size in ((i % 6, "large"), ((i + 1 + i // 18) % 6, second)):
                width, height = SIDES[size]
                entry = {"id": len(annotations), "image_id": i, "category_id": label, "iscrowd": 0}
                annotations.append(entry | {"bbox": [1, 1, width, height], "area": width * height})
        categories = [{"id": i, "name": name} for i, name in enumerate(NAMES)]
        values = {"images": images, "annotations": annotations, "categories": categories}
        put_json(folder / "annotations" / f"instances_{split}2017.json", values)
    return folder


def put_run(
    folder: Path, data: Path, missed: tuple[str, ...] = ("small",), alpha: np.ndarray | None = None, **labels: float
) -> Path:
    """A finished run that gives labels whose largest object has a missed size the scores of images without them. `alpha`
    [n, 1]: of its images; `labels`: α by name."""
    table = table_at(data)
    judged = table.subset(table.rows("val"))
    matrix = judged.matrix
    assert judged.objects is not None
    low = np.zeros(matrix.shape, bool)
    for size in missed:
        width, height = SIDES[size]
        area = (judged.objects.box[:, 2] - judged.objects.box[:, 0]) * (
            judged.objects.box[:, 3] - judged.objects.box[:, 1]
        )
        fits = np.abs(area - width * height) < 1
        low[judged.objects.row[fits], judged.objects.label[fits]] = True
    rng = np.random.default_rng(3)
    scores = np.where((matrix == PRESENT) & ~low, 0.7 + 0.3 * rng.random(matrix.shape), 0.5 * rng.random(matrix.shape))
    scores = scores.astype(np.float32)
    ap = 100 * average_precision(scores, matrix)
    results: dict[str, Any] = {
        "schema": 1,
        "mAP": float(np.nanmean(ap)),
        "data": {"name": judged.name, "split": "val", "images": len(judged)},
        "model": {"head": "linear"},
        "labels": [
            {"name": name, "ap": float(value), "support": int(count)}
            | ({"alpha": labels[name]} if name in labels else {})
            for name, value, count in zip(judged.labels, ap, (matrix == PRESENT).sum(axis=0), strict=True)
        ],
    }
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(results))
    settings = {"data": {"path": str(data)}, "head": {"name": "linear"}, "other_version": 1}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    write_scores(folder, judged.keys, scores, matrix, alpha)
    return folder

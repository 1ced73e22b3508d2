"""What our own command line reads from files that another program wrote: labels and boxes by image."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

from command import manylabel, settings

Boxes = dict[str, list[tuple[str, list[float]]]]


def labels_of(data: Path, scratch: Path, *values: str) -> dict[str, set[str]]:
    """By the name of each image, as `data convert --to csv` gives them."""
    rows = rows_of(data, scratch, *values)
    found = {Path(row["file_name"]).name: set(filter(None, row["labels"].split("|"))) for row in rows}
    assert len(found) == len(rows), f"one image twice in {data}: {Counter(row['file_name'] for row in rows)}"
    return found


def rows_of(data: Path, scratch: Path, *values: str) -> list[dict[str, str]]:
    file = scratch / f"{data.stem}-labels.csv"
    _convert(data, file, "csv", *values)
    with open(file, newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def boxes_of(data: Path, scratch: Path, *values: str) -> Boxes:
    """[(label, [left, top, width, height] in pixels), …] of each image, as `data convert --to coco` gives them."""
    file = scratch / f"{data.stem}-coco.json"
    _convert(data, file, "coco", *values)
    content = json.loads(file.read_text(encoding="utf-8"))
    names = {entry["id"]: entry["name"] for entry in content["categories"]}
    images = {entry["id"]: Path(entry["file_name"]).name for entry in content["images"]}
    found: Boxes = {name: [] for name in images.values()}
    for entry in content["annotations"]:
        if "bbox" in entry:  # else the label of a whole image
            box = names[entry["category_id"]], entry["bbox"]
            found[images[entry["image_id"]]].append(box)
    return {name: sorted(boxes) for name, boxes in found.items()}


def _convert(data: Path, file: Path, to: str, *values: str) -> None:
    done = manylabel("data", "convert", data, file, "--to", to, "--images", "leave", "--overwrite", *settings(*values))
    assert done.returncode == 0, done.stderr

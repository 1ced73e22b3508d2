"""A small COCO file for the tests of its reader and its writer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labelled_files import put_images, put_json

CATEGORIES = [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}, {"id": 90, "name": "zebra"}]
SQUARE = [[4, 4, 14, 4, 14, 14, 4, 14]]
Change = Callable[[dict[str, Any]], None]


def image(number: int, name: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "file_name": name, "width": 40, "height": 30, **more}


def note_of(number: int, picture: int, category: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "image_id": picture, "category_id": category, "bbox": [4, 4, 10, 10], "iscrowd": 0, **more}


def small() -> dict[str, Any]:
    """Three images: a dog and two cats, a crowd of dogs, nothing."""
    runs = {"size": [30, 40], "counts": [100, 20, 1080]}
    return {
        "info": {"categories": "not these"},
        "images": [image(11, "a.jpg"), image(12, "b.jpg"), image(13, "c.jpg")],
        "annotations": [
            note_of(1, 12, 7, iscrowd=1, segmentation=runs),
            note_of(2, 11, 3, bbox=[0.5, 1, 20.25, 8], segmentation=SQUARE),
            note_of(3, 11, 7),
            note_of(4, 11, 3),
        ],
        "categories": copy.deepcopy(CATEGORIES),
    }


def put_small(folder: Path, change: Change = lambda data: None) -> Path:
    data = small()
    change(data)
    put_images(folder, "a.jpg", "b.jpg", "c.jpg")
    return put_json(folder / "labels.json", data)

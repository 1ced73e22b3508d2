"""Data on which speed is measured: made from a fixed seed, a part for each kind of work."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

LABELS = [f"label {number:02d}" for number in range(20)]
SHAPES = ["square", "disc", "triangle"]


def photos(folder: Path) -> None:
    """160 photos of usual sides, many labels in each: a CSV without a split."""
    rows = [(f"{number:04d}.jpg", "|".join(_labels(number))) for number in range(160)]
    _draw(folder / "images", [name for name, _ in rows], (500, 375))
    _write_csv(folder / "labels.csv", ("file_name", "labels"), rows)


def small(folder: Path) -> None:
    """960 small photos, a fifth of them for validation."""
    parts = ["val" if number % 5 == 4 else "train" for number in range(960)]
    rows = [(f"{number:04d}.jpg", "|".join(_labels(number)), part) for number, part in enumerate(parts)]
    _draw(folder / "images", [row[0] for row in rows], (120, 96))
    _write_csv(folder / "labels.csv", ("file_name", "labels", "split"), rows)


def many(folder: Path) -> None:
    """A CSV of 100,000 rows, and COCO with 20,000 boxes in 5,000 of the same images, which are empty files."""
    names = [f"{number // 1000:02d}/{number:06d}.jpg" for number in range(100_000)]
    _put_empty(folder / "images", names)
    _write_csv(folder / "labels.csv", ("file_name", "labels"), [(n, "|".join(_labels(i))) for i, n in enumerate(names)])
    images = [{"id": i, "file_name": name, "width": 640, "height": 480} for i, name in enumerate(names[:5000])]
    boxes = [
        {
            "id": number,
            "image_id": number % len(images),
            "category_id": number % len(LABELS),
            "bbox": [number % 300, number % 200, 50 + number % 90, 40 + number % 70],
            "area": (50 + number % 90) * (40 + number % 70),
            "iscrowd": 0,
        }
        for number in range(20_000)
    ]
    _write_coco(folder / "coco.json", images, boxes, LABELS)


def voc(folder: Path) -> None:
    """800 images of Pascal VOC with three objects each."""
    names = [f"2012_{number:06d}" for number in range(800)]
    _put_empty(folder / "JPEGImages", [f"{name}.jpg" for name in names])
    for place in ("Annotations", "ImageSets/Main"):
        (folder / place).mkdir(parents=True)
    for number, name in enumerate(names):
        objects = "".join(
            f"<object><name>{label}</name><pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult><bndbox>"
            f"<xmin>{20 + 9 * i}</xmin><ymin>{30 + 7 * i}</ymin><xmax>{120 + 9 * i}</xmax><ymax>{99 + 7 * i}</ymax>"
            "</bndbox></object>"
            for i, label in enumerate(_labels(number, 3))
        )
        size = "<size><width>500</width><height>375</height><depth>3</depth></size>"
        text = f"<annotation><folder>VOC2012</folder><filename>{name}.jpg</filename>{size}{objects}</annotation>"
        (folder / "Annotations" / f"{name}.xml").write_text(text, encoding="utf-8")
    for part, chosen in (("train", names[::2]), ("val", names[1::2])):
        (folder / "ImageSets" / "Main" / f"{part}.txt").write_text("\n".join(chosen) + "\n", encoding="utf-8")


def objects(folder: Path) -> None:
    """COCO with outlines: 160 small pictures of one to three shapes."""
    (folder / "images").mkdir(parents=True)
    random = np.random.default_rng(3)
    images, notes = [], []
    for number in range(160):
        picture = Image.fromarray(_pixels(random, (96, 96)))
        draw = ImageDraw.Draw(picture)
        for _ in range(1 + number % 3):
            kind, side = int(random.integers(len(SHAPES))), int(random.integers(20, 44))
            left, top = (int(at) for at in random.integers(0, 96 - side, 2))
            outline = _outline(kind, left, top, side)
            draw.polygon(outline, fill=[(220, 40, 40), (40, 200, 60), (50, 60, 220)][kind])
            notes.append(
                {
                    "id": len(notes),
                    "image_id": number,
                    "category_id": kind,
                    "bbox": [left, top, side, side],
                    "area": side * side,
                    "iscrowd": 0,
                    "segmentation": [[float(value) for point in outline for value in point]],
                }
            )
        picture.save(folder / "images" / f"{number:03d}.jpg", quality=90)
        images.append({"id": number, "file_name": f"{number:03d}.jpg", "width": 96, "height": 96})
    _write_coco(folder / "labels.json", images, notes, SHAPES)


PARTS: dict[str, Callable[[Path], None]] = {make.__name__: make for make in (photos, small, many, voc, objects)}


def _labels(number: int, count: int = 0) -> list[str]:
    """One to four labels (or so many), each as often as the others."""
    return [LABELS[(7 * number + 3 * i) % len(LABELS)] for i in range(count or 1 + number % 4)]


def _draw(folder: Path, names: Iterable[str], size: tuple[int, int]) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(1)
    for name in names:
        Image.fromarray(_pixels(random, size)).save(folder / name, quality=88)


def _pixels(random: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Soft patches of colour with some grain, as a JPEG of a photo has them: [H, W, 3]"""
    coarse = Image.fromarray(random.integers(0, 256, (7, 9, 3), np.uint8)).resize(size, Image.Resampling.BICUBIC)
    grain = random.integers(-12, 13, (size[1], size[0], 1), np.int16)
    return np.clip(np.asarray(coarse, np.int16) + grain, 0, 255).astype(np.uint8)


def _outline(kind: int, left: int, top: int, side: int) -> list[tuple[float, float]]:
    right, bottom, middle = left + side, top + side, side / 2
    if kind == 0:
        return [(left, top), (right, top), (right, bottom), (left, bottom)]
    if kind == 2:
        return [(left, bottom), (left + middle, top), (right, bottom)]
    turns = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    return [(left + middle * (1 + float(np.cos(a))), top + middle * (1 + float(np.sin(a)))) for a in turns]


def _put_empty(folder: Path, names: Iterable[str]) -> None:
    """Files that are only looked for: nobody opens them."""
    for place in {(folder / name).parent for name in names}:
        place.mkdir(parents=True)
    for name in names:
        (folder / name).touch()


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def _write_coco(path: Path, images: list[dict], notes: list[dict], names: Sequence[str]) -> None:
    categories = [{"id": number, "name": name} for number, name in enumerate(names)]
    path.write_text(json.dumps({"images": images, "annotations": notes, "categories": categories}), encoding="utf-8")

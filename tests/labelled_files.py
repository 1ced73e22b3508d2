"""Small data sets on disk for the tests of readers and writers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.objects import Objects
from manylabel.data.read import read_table
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.labels import LabelSpace

WIDTH, HEIGHT = 40, 30


def put_images(folder: Path, *names: str) -> Path:
    """Real images of 40×30 pixels, each of another colour."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (WIDTH, HEIGHT), (20 * number % 256, 90, 120)).save(folder / name)
    return folder


def put_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def put_lines(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def table_at(path: Path, **changes: Any) -> Table:
    return read_table(replace(DataConfig(path=str(path)), **changes))


def boxes_of(table: Table) -> list[tuple[str, str, list[float]]]:
    """(key, label, rounded box) of every object."""
    if table.objects is None:
        return []
    columns = zip(table.objects.row, table.objects.label, table.objects.box, strict=True)
    return [(str(table.keys[r]), table.labels.names[k], [round(float(x), 3) for x in box]) for r, k, box in columns]


def varied_table(folder: Path, *, splits: bool = True, boxes: bool = True, mostly_unknown: bool = False) -> Table:
    """Present, absent and unknown labels; names with delimiters and other scripts; boxes, groups and splits."""
    keys = np.array(["a.jpg", "été/b c.jpg", "猫.jpg", "d#1.jpg"])
    put_images(folder, *keys)
    names = ("bus, red", "cat|dog", 'd\'été "x"', "never", "犬")
    matrix = np.array([[1, 0, -1, 0, 0], [0, 1, 1, 0, -1], [0, 0, 0, 0, 0], [1, 1, 0, 0, 1]], np.int8)
    if mostly_unknown:
        matrix = np.where(matrix == 0, -1, np.where(matrix == -1, 0, matrix)).astype(np.int8)
    objects = Objects(
        row=np.array([0, 1, 1]),
        label=np.array([0, 2, 1], np.int32),
        box=np.array([[1, 2, 11, 22], [0, 0, 40, 30], [3.5, 4.25, 20, 29]], np.float32),
        crowd=np.array([False, True, False]),
        difficult=np.array([False, False, False]),
        masks=(None, None, None),
    )
    return Table(
        name="varied",
        source=FileSource(folder),
        keys=keys,
        labels=LabelSpace(names),
        matrix=matrix,
        split=np.array(["train", "val", "train", "test"]) if splits else None,
        groups=np.array(["g1", "", "g1", "g2"]),
        objects=objects if boxes else None,
    )


def assert_same(again: Table, table: Table, prefixes: list[str] | None = None) -> None:
    """Everything that a format can hold; keys may have become longer by these prefixes."""
    expected = [prefix + key for prefix, key in zip(prefixes or [""] * len(table), table.keys.tolist(), strict=True)]
    order = [again.keys.tolist().index(key) for key in expected]
    assert sorted(order) == list(range(len(again)))
    assert again.labels.names == table.labels.names
    assert again.matrix[order].tolist() == table.matrix.tolist()
    for ours, theirs in ((again.split, table.split), (again.groups, table.groups)):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours[order].tolist() == theirs.tolist()
    named = dict(zip(table.keys.tolist(), expected, strict=True))
    assert sorted(boxes_of(again)) == sorted((named[key], label, box) for key, label, box in boxes_of(table))

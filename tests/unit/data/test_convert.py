"""Conversions: nothing lost unsaid, nothing written over, and a million rows in little memory."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manylabel.config import DataConfig, ScenesConfig
from manylabel.data.convert import convert
from manylabel.data.read import read_table
from manylabel.error import DataError, ManylabelError

Make = Callable[[str], Path]


def _same(a: object, b: object) -> None:
    for name in ("keys", "matrix", "split", "groups"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None and y is None) or (np.asarray(x) == np.asarray(y)).all(), name
    assert a.labels == b.labels  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "file_name,labels\na.jpg,dog|cat\nb.jpg,\nc.jpg,cat\n",
        "file_name,labels,split,group\na.jpg,dog|cat,train,x\nb.jpg,,val,\nc.jpg,cat,test,x\n",
        "file_name,labels,unknown_labels\na.jpg,dog|cat,bird\nb.jpg,,\nc.jpg,bird,cat|dog\n",
        "file_name,labels,absent_labels\na.jpg,dog|cat,\nb.jpg,,dog\nc.jpg,cat,bird|dog\n",
        "file_name,bird,cat,dog\na.jpg,1,0,\nb.jpg,,1,0\nc.jpg,0,,1\n",
        "file_name,labels\na.jpg,\"=dog|cup, mug\"\nb.jpg,=dog|'=x\nc.jpg,''=x\n",
    ],
)
def test_a_csv_read_and_written_is_the_same(make_csv: Make, tmp_path: Path, text: str) -> None:
    source = DataConfig(path=str(make_csv(text)))
    done = convert(source, tmp_path / "out", "csv", images="copy")
    assert done.images == 3
    _same(read_table(source), read_table(DataConfig(path=str(tmp_path / "out"))))


def test_images_that_stay_are_found_with_the_note(make_csv: Make, tmp_path: Path) -> None:
    source = DataConfig(path=str(make_csv("file_name,labels\na.jpg,x|y\nb.jpg,y\nc.jpg,\n")))
    done = convert(source, tmp_path / "new" / "all.tsv", "csv")
    root = str(tmp_path / "data")
    assert any(f"--set data.images={root}" in note for note in done.notes)
    table = read_table(DataConfig(path=str(tmp_path / "new" / "all.tsv"), images=root))
    _same(read_table(source), table)
    assert not (tmp_path / "new" / "images").exists()


def test_only_one_split(make_csv: Make, tmp_path: Path) -> None:
    source = DataConfig(path=str(make_csv("file_name,labels,split\na.jpg,x,train\nb.jpg,y,val\nc.jpg,x,val\n")))
    assert convert(source, tmp_path / "val.csv", "csv", split="val").images == 2
    with pytest.raises(DataError, match="no images in split 'test'"):
        convert(source, tmp_path / "test.csv", "csv", split="test")


def test_nothing_is_written_over(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels\na.jpg,x\nb.jpg,y\nc.jpg,\n")
    before = path.read_bytes()
    with pytest.raises(ManylabelError, match="is there already"):
        convert(DataConfig(path=str(path)), path, "csv")
    with pytest.raises(DataError, match="is the data itself"):
        convert(DataConfig(path=str(path)), path, "csv", overwrite=True)
    with pytest.raises(DataError, match="folder with files in it"):
        convert(DataConfig(path=str(path)), path.parent, "csv")
    with pytest.raises(DataError, match="did you mean 'coco'"):
        convert(DataConfig(path=str(path)), tmp_path / "x", "cocoa")
    assert path.read_bytes() == before


def test_a_bad_row_leaves_nothing_behind(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels\na.jpg,x\nb.jpg,y\ngone.jpg,x\n")
    with pytest.raises(DataError, match="row 4: 'gone.jpg' is not there"):
        convert(DataConfig(path=str(path)), tmp_path / "out.csv", "csv")
    assert not list(tmp_path.glob("out*"))
    done = convert(DataConfig(path=str(path), missing="drop"), tmp_path / "out.csv", "csv")
    assert done.images == 2
    assert any("1 rows were left out" in note for note in done.notes)


def test_what_a_csv_cannot_hold_is_said(tmp_path: Path) -> None:
    done = convert(DataConfig(path="scenes", scenes=ScenesConfig(train=6, val=2, size=64)), tmp_path / "scenes", "csv")
    assert done.images == 8
    table = read_table(DataConfig(path=str(tmp_path / "scenes")))
    assert len(table) == 8
    assert table.source.describe(str(table.keys[0])) == (64, 64)
    lost = [note for note in done.notes if "labels that no row names" in note]
    assert len(lost) == (len(table.labels) < 28)


PEAK = """
import json, resource, sys
from pathlib import Path
from manylabel import console
console.QUIET = True
from manylabel.config import DataConfig
from manylabel.data.convert import convert
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = convert(DataConfig(path=sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"images": done.images, "grown": (after - before) / 1024}))
"""


def _many_names(folder: Path, count: int) -> Path:
    """A label file with `count` different names of one image: paths through two links to the folder itself."""
    photo = folder / "a.jpg"
    photo.write_bytes(b"\xff\xd8")
    for link in "pq":
        (folder / link).symlink_to(".", target_is_directory=True)
    with open(folder / "labels.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file_name", "labels", "split"])
        for i in range(count):
            name = "/".join("pq"[i >> bit & 1] for bit in range(20)) + "/a.jpg"
            rows.writerow([name, "|".join({f"label {i * k % 997}" for k in (1, 7, 13)}), "train"])
    return folder


@pytest.mark.slow
def test_a_million_rows_in_bounded_memory(tmp_path: Path) -> None:
    folder = _many_names(tmp_path, 1_000_000)
    command = [sys.executable, "-c", PEAK, str(folder), str(tmp_path / "out.csv"), "csv"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ}).stdout
    facts = json.loads(answer)
    assert facts["images"] == 1_000_000
    assert facts["grown"] < 250, "more than 250 MB for a million rows"
    with open(tmp_path / "out.csv", "rb") as file:
        assert sum(1 for _ in file) == 1_000_001


def test_replaced_config_is_respected(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels\na.jpg,x\na.jpg,y\nb.jpg,x\n")
    with pytest.raises(DataError, match="already stands in row 2"):
        convert(DataConfig(path=str(path)), tmp_path / "o.csv", "csv")
    merged = replace(DataConfig(path=str(path)), duplicates="merge")
    assert convert(merged, tmp_path / "o.csv", "csv").images == 2


def test_images_of_shards_become_files(tmp_path: Path, photos: Path) -> None:
    import io
    import tarfile

    table = read_table(DataConfig(path=str(photos)))
    (tmp_path / "shards").mkdir()
    with tarfile.open(tmp_path / "shards" / "all-000.tar", "w") as tar:
        for row, key in enumerate(table.keys):
            names = [table.labels.names[i] for i in np.flatnonzero(table.matrix[row] == 1)]
            for suffix, data in (
                ("jpg", table.source.raw(str(key))),  # type: ignore[attr-defined]
                ("json", json.dumps({"labels": names}).encode()),
            ):
                info = tarfile.TarInfo(f"{row:03d}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    source = DataConfig(path=str(tmp_path / "shards"))
    with pytest.raises(DataError, match="--images copy"):
        convert(source, tmp_path / "left.csv", "csv")
    assert convert(source, tmp_path / "out", "csv", images="copy").images == 48
    again = read_table(DataConfig(path=str(tmp_path / "out")))
    assert (again.matrix == table.matrix).all()
    assert again.source.raw(str(again.keys[5])) == table.source.raw(str(table.keys[5]))  # type: ignore[attr-defined]

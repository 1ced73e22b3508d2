"""Label files that are damaged in a thousand ways: a table or a DataError, never anything else, and never for long."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from strangers import limits

from manylabel.config import DataConfig
from manylabel.data.read import FORMATS, read_table
from manylabel.error import DataError

sys.path.append(str(Path(__file__).parents[1] / "unit" / "data" / "read"))
from test_every_format import CASES

TRIES = 40
PIECES = (b"null", b"[]", b"{}", b"-1", b"1e999", b"NaN", b"9" * 400, b'"', b"\\ud800", b"\x00", b"\xff")
PIECES += (b"../../a.jpg", b"[" * 300, b"|", b",", b"\n", b"<!DOCTYPE a>")


def _label_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() != ".jpg")


def _mutations(data: bytes, dice: random.Random) -> Iterator[bytes]:
    for _ in range(TRIES):
        kind = dice.randrange(5)
        at = dice.randrange(len(data) + 1)
        if kind == 0:
            yield data[:at]
        elif kind == 1:
            yield data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
        elif kind == 2:
            yield data[:at] + dice.choice(PIECES) + data[at:]
        elif kind == 3:
            end = min(len(data), at + dice.randrange(1, 30))
            yield data[:at] + data[end:]
        else:
            other = dice.randrange(len(data) + 1)
            yield data[:at] + data[other : other + dice.randrange(1, 60)] + data[at:]


@pytest.mark.parametrize("name", CASES)
def test_damaged_label_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    CASES[name].write(folder)
    dice = random.Random(name)
    refused = 0
    for file in _label_files(folder):
        whole = file.read_bytes()
        for number, damaged in enumerate(_mutations(whole, dice)):
            file.write_bytes(damaged)
            start = time.process_time()
            try:
                read_table(DataConfig(path=str(folder), format="auto" if number % 2 else name))
            except DataError:
                refused += 1
            assert time.process_time() - start < 5
        file.write_bytes(whole)
    assert refused > 0 or not _label_files(folder)
    assert len(read_table(DataConfig(path=str(folder)))) > 0  # whole again


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("kind", ["empty folder", "empty file", "no such folder inside", "noise"])
def test_nothing_of_the_kind_is_a_clear_error(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir()
    if kind == "empty file":
        path = path / "labels.json"
        path.write_bytes(b"")
    elif kind == "noise":
        path = path / "labels.csv"
        path.write_bytes(random.Random(0).randbytes(5000))
    elif kind == "no such folder inside":
        (path / "Annotations").mkdir()
        shutil.copy(__file__, path / "readme.py")
    with pytest.raises(DataError):
        read_table(DataConfig(path=str(path), format=name))


def test_a_line_without_end_is_refused_before_it_fills_the_memory(photos: Path) -> None:
    path = photos / "labels.csv"
    os.truncate(path, 10**12)
    with limits(), pytest.raises(DataError, match=r"labels\.csv, row \d+: longer than a line of labels can be"):
        read_table(DataConfig(path=str(path), format="csv"))

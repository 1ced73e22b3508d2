"""Splits in a file of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from manylabel.config import DataConfig
from manylabel.data.read import read_table
from manylabel.data.read.split_file import write_split_file
from manylabel.error import DataError


def _read(photos: Path, file: Path, **changes: object) -> object:
    return read_table(replace(DataConfig(path=str(photos), split_file=str(file)), **changes))  # type: ignore[arg-type]


def test_splits_and_folds_are_used(photos: Path, tmp_path: Path) -> None:
    keys = read_table(DataConfig(path=str(photos))).keys.tolist()
    write_split_file(tmp_path / "s.csv", {key: "val" if i % 4 == 0 else "train" for i, key in enumerate(keys)})
    split = _read(photos, tmp_path / "s.csv").split  # type: ignore[attr-defined]
    assert split.tolist().count("val") == 12
    write_split_file(tmp_path / "f.csv", {key: i % 3 for i, key in enumerate(keys)}, "fold")
    split = _read(photos, tmp_path / "f.csv", fold=2).split  # type: ignore[attr-defined]
    assert split[2] == "val"
    assert split.tolist().count("val") == 16


def test_names_that_look_like_formulas_survive(photos: Path, tmp_path: Path) -> None:
    (photos / "images" / "photo000.jpg").rename(photos / "images" / "=1+1.jpg")
    (photos / "labels.csv").write_text((photos / "labels.csv").read_text().replace("photo000.jpg", "=1+1.jpg"))
    keys = read_table(DataConfig(path=str(photos))).keys.tolist()
    write_split_file(tmp_path / "s.csv", {key: "val" if key == "=1+1.jpg" else "train" for key in keys})
    assert "'=1+1.jpg" in (tmp_path / "s.csv").read_text()
    assert _read(photos, tmp_path / "s.csv").split.tolist().count("val") == 1  # type: ignore[attr-defined]


def test_errors_name_the_file_and_the_image(photos: Path, tmp_path: Path) -> None:
    write_split_file(tmp_path / "s.csv", {"photo000.jpg": "train"})
    with pytest.raises(DataError, match=r"s.csv does not name the image 'photo001.jpg'"):
        _read(photos, tmp_path / "s.csv")
    with pytest.raises(DataError, match="needs the columns file_name and fold"):
        _read(photos, tmp_path / "s.csv", fold=0)
    keys = read_table(DataConfig(path=str(photos))).keys.tolist()
    write_split_file(tmp_path / "s.csv", dict.fromkeys(keys, "trian"))
    with pytest.raises(DataError, match=r"split 'trian' is none we know.*did you mean 'train'"):
        _read(photos, tmp_path / "s.csv")
    write_split_file(tmp_path / "f.csv", dict.fromkeys(keys, 0), "fold")
    with pytest.raises(DataError, match="no fold 4; its folds are 0"):
        _read(photos, tmp_path / "f.csv", fold=4)
    with pytest.raises(DataError, match="data.fold needs data.split_file"):
        read_table(DataConfig(path=str(photos), fold=1))
    with pytest.raises(DataError, match="cannot read"):
        _read(photos, tmp_path / "none.csv")


def test_a_split_file_beside_the_data_is_not_its_labels(photos: Path) -> None:
    (photos / "labels.csv").rename(photos / "mine.csv")
    keys = read_table(DataConfig(path=str(photos))).keys.tolist()
    write_split_file(photos / "split.csv", dict.fromkeys(keys, "train"))
    assert len(_read(photos, photos / "split.csv")) == 48  # type: ignore[arg-type]


def test_a_split_file_beside_folders_of_labels(photos: Path, tmp_path: Path) -> None:
    for i, image in enumerate(sorted((photos / "images").iterdir())):
        (tmp_path / "data" / f"label{i % 2}").mkdir(parents=True, exist_ok=True)
        image.rename(tmp_path / "data" / f"label{i % 2}" / image.name)
    keys = read_table(DataConfig(path=str(tmp_path / "data"))).keys.tolist()
    write_split_file(tmp_path / "data" / "folds.csv", {key: i % 2 for i, key in enumerate(keys)}, "fold")
    table = _read(tmp_path / "data", tmp_path / "data" / "folds.csv", fold=1)
    assert table.split.tolist().count("val") == 24  # type: ignore[attr-defined]

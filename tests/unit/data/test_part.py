"""Official parts as papers use them, and images without any label."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from command import TINY
from conftest import write_csv, write_photos

import manylabel as ml
from manylabel import run
from manylabel.config import DataConfig, make_config
from manylabel.config.recipe import recipe_names
from manylabel.error import ConfigError, DataError

PUBLISHED = ["data.parts.train=train,val", "data.parts.val=test"]


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """48 photos, a third of them in each official part."""
    labels = write_photos(tmp_path / "voc", 48)
    parts = ("train", "val", "test")
    rows = [[f"photo{i:03d}.jpg", "|".join(names), parts[i % 3]] for i, names in enumerate(labels)]
    write_csv(tmp_path / "voc" / "labels.csv", rows, ["file_name", "labels", "split"])
    return tmp_path / "voc"


def test_all_of_trainval_is_trained_on_and_all_of_test_judged(official: Path, tmp_path: Path) -> None:
    settings = [*TINY, *PUBLISHED, "train.epochs=1", "data.workers=0"]
    found = run.train(str(official), out=tmp_path / "run", settings=settings)
    assert found.results["data"]["images"] == 16
    assert json.loads((tmp_path / "run" / "run.json").read_text())["images"] == 48
    assert not (tmp_path / "run" / "split.csv").exists()  # no fifth is held out beside it
    assert any("the official test" in note for note in found.results["notes"])
    again, _ = run.evaluate(tmp_path / "run")
    assert again["mAP"] == found.results["mAP"]
    table = ml.load_data(official, parts={"train": "train,val", "val": "test"})
    assert Counter(table.split.tolist()) == {"train": 32, "val": 16}
    assert any("train is the official train + val" in note for note in table.notes)


def test_images_in_no_part_are_left_out(official: Path) -> None:
    table = ml.load_data(official, parts={"train": ["train"], "val": ["test"]})
    assert len(table) == 32
    assert all(int(key[5:8]) % 3 != 1 for key in table.keys)


def test_parts_that_are_not_there_or_make_no_sense_are_named(official: Path, photos: Path) -> None:
    with pytest.raises(DataError, match=r"no official parts"):
        ml.load_data(photos, parts={"train": ["train"], "val": ["test"]})
    rows = (official / "labels.csv").read_text().replace(",test", ",val")
    (official / "labels.csv").write_text(rows)
    with pytest.raises(DataError, match=r"data\.parts\.val: .* has no part 'test'; it has train, val"):
        ml.load_data(official, parts={"train": ["train", "val"], "val": ["test"]})
    for wrong in ("data.parts.train=train", "data.parts.train=trainval", "data.parts.val=test"):
        with pytest.raises(ConfigError, match=r"data\.parts"):
            make_config(settings=[wrong])
    with pytest.raises(ConfigError, match="in train or in val"):
        make_config(settings=["data.parts.train=train,val", "data.parts.val=val"])
    with pytest.raises(ConfigError, match="split_file"):
        make_config(settings=[*PUBLISHED, "data.split_file=split.csv"])


def test_images_without_any_label_are_dropped_where_papers_drop_them(photos: Path) -> None:
    kept, dropped = ml.load_data(photos), ml.load_data(photos, unlabelled="drop")
    without = int(((kept.matrix == 1).sum(axis=1) == 0).sum())
    assert without > 0
    assert len(dropped) == len(kept) - without
    assert ((dropped.matrix == 1).sum(axis=1) > 0).all()
    assert f"{without} images that show none" in " ".join(dropped.notes)
    assert DataConfig().unlabelled == "keep"
    (photos / "labels.csv").write_text("file_name,cat\nphoto000.jpg,0\nphoto001.jpg,0\n")
    with pytest.raises(DataError, match="would leave none"):
        ml.load_data(photos, unlabelled="drop")


@pytest.mark.parametrize("recipe", ["ml-decoder-voc", "hsq-voc-paper"])
def test_recipes_for_voc_train_on_trainval_and_judge_on_test(recipe: str, official: Path) -> None:
    parts = make_config(recipe).only.data.parts
    table = ml.load_data(official, parts={"train": parts.train, "val": parts.val})
    assert Counter(table.split.tolist()) == {"train": 32, "val": 16}


def test_recipes_for_coco_drop_images_without_labels() -> None:
    recipes = [name for name in recipe_names() if name.startswith("ml-decoder-coco") and "zsl" not in name]
    assert len(recipes) == 5
    assert {make_config(name).only.data.unlabelled for name in recipes} == {"drop"}
    assert make_config("hsq-r101").only.data.unlabelled == "keep"  # as Query2Label

"""--stage all: every block of the backbone beside the others, for each label."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import manylabel
from explained import bundle, photos
from PIL import Image

from manylabel.error import ConfigError
from manylabel.explain import explain
from manylabel.explain.every_stage import EveryStage
from manylabel.explain.picture_folder import PictureFolder
from manylabel.inference.predictor import Predictor


def test_each_label_at_each_stage_as_alone() -> None:
    model, pictures = bundle("neck.name=rm", "neck.stages=rm1"), photos(2)
    found = explain(model, iter(pictures), ["cat", "fox"], "grad_cam_pp", "all")
    stages = EveryStage(Predictor(model)).stages
    assert stages[-1] == "final"
    assert len(stages) > 4
    assert [(one.label, one.stage) for one in found] == [
        (label, stage) for _ in pictures for label in ("cat", "fox") for stage in stages
    ]
    for one in found[: 2 * len(stages)]:
        alone, _ = explain(model, pictures, [one.label], "grad_cam_pp", one.stage)
        np.testing.assert_allclose(one.grids[one.stage], alone.grids[one.stage], atol=1e-6)


def test_a_row_of_the_sheet_for_each_label_and_a_picture_for_each_block(tmp_path: Path) -> None:
    model = bundle("neck.name=rm", "neck.stages=rm1")
    stages = EveryStage(Predictor(model)).stages
    folder = PictureFolder(tmp_path / "out")
    files = folder.add(explain(model, photos(1), ["cat", "fox"], stage="all"))
    assert [file[0].name.split("-")[-1] for file in files] == [f"{stage}.png" for stage in stages] * 2
    all_of_it = Image.open(folder.close())
    one = PictureFolder(tmp_path / "one")
    one.add(explain(model, photos(1), ["cat"], stage="final"))
    alone = Image.open(one.close())
    assert all_of_it.height > 1.8 * alone.height
    assert all_of_it.width > 0.8 * alone.width * (len(stages) + 1) / 2


def test_attention_has_no_stages_of_the_backbone() -> None:
    with pytest.raises(ConfigError, match="for every stage use grad_cam"):
        EveryStage(Predictor(bundle("head.name=ml_decoder", "head.heads=2", "head.dim=16")), "attention")


def test_the_command(trained: Path, photos: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no")
    asked = ("explain", trained, photos / "images" / "photo000.jpg", broken, "--label", "red", "--stage", "all")
    said = manylabel(*asked, "--out", tmp_path / "why")
    assert said.returncode == 0, said.stderr
    assert "broken.jpg: cannot be read" in said.stdout
    assert len(list((tmp_path / "why").glob("0001-photo000-red-*.png"))) == said.stdout.count("photo000-red-") > 4

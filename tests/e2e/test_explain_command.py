"""manylabel explain and manylabel bench explain as a user meets them, and maps in the report of a run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import manylabel
from PIL import Image

from benchmarks.explain import AREA, CENTRE, measure
from manylabel import run
from manylabel.data.scenes import draw_scene
from manylabel.explain import Explainer
from manylabel.explain.pointing import box_area, points_inside
from manylabel.inference.predictor import Predictor


def test_the_commands(trained: Path, photos: Path, tmp_path: Path) -> None:
    out = trained
    page = (out / "report.html").read_text(encoding="utf-8")
    assert 'alt="where the model looked for' in page
    assert "The second picture: where it looked for the label (grad-cam, final)" in page

    image, broken = photos / "images" / "photo000.jpg", tmp_path / "broken.jpg"
    broken.write_bytes(b"no")
    why = tmp_path / "why"
    said = manylabel("explain", out, image, broken, "--label", "red", "--label", "BLUE", "--out", why, "--json")
    assert said.returncode == 0, said.stderr
    red, blue, bad = json.loads(said.stdout)
    assert (red["label"], blue["label"], red["method"], red["stage"]) == ("red", "blue", "grad_cam", "final")
    assert red["size"] == [96, 72]
    assert bad["error"]
    assert np.array(red["grids"]["final"]).shape == (2, 2)
    assert [Path(red["files"][0]).name, bad["files"]] == ["0001-photo000-red.png", []]
    assert Image.open(why / "sheet.png").width > 400

    plain = manylabel(
        "explain", out, image, "--stage", "stage3", "--method", "grad_cam_pp", "--out", why, "--overwrite"
    )
    assert "(grad_cam_pp, stage3)" in plain.stdout
    for wrong, message in (
        (("--label", "redd"), "did you mean 'red'"),
        (("--stage", "stag3"), "did you mean 'stage3'"),
        (("--method", "gradcam"), "did you mean 'grad_cam'"),
        (("--method", "attention"), "has no attention to look at"),
    ):
        failed = manylabel("explain", out, image, *wrong, "--out", tmp_path / "no")
        assert failed.returncode == 2
        assert message in failed.stderr
    assert not (tmp_path / "no").exists()
    assert manylabel("explain", out, broken, "--out", tmp_path / "none").returncode == 1
    no_boxes = manylabel("bench", "explain", out, "--data", photos)
    assert no_boxes.returncode == 2
    assert "has no boxes of the model's labels" in no_boxes.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_maps_point_at_planted_objects(tmp_path: Path) -> None:
    """Scenes whose objects' boxes are known: the map of a label points into them, maps of other labels do not."""
    data = {"path": "scenes", "scenes": {"train": 300, "val": 40}}
    small = ["backbone.image_size=192", "train.epochs=15", "data.workers=0"]
    predictor = Predictor.load(run.train(data, out=tmp_path / "run", head="linear", settings=small).folder)
    scenes = [draw_scene(0, index, 256) for index in range(400, 460)]
    names = sorted({thing.label for scene in scenes for thing in scene.objects})
    explainer = Explainer(predictor, "grad_cam", "stage4")
    right, others, areas = [], [], []
    for scene, row in zip(scenes, explainer.stream([Image.fromarray(s.image) for s in scenes], names), strict=True):
        maps = {found.label: found.sized(128, 128) for found in row}
        present = sorted({thing.label for thing in scene.objects})
        for label in present:
            boxes = np.array([thing.box for thing in scene.objects if thing.label == label]) / 256
            inside = box_area(boxes, 128, 128)
            if inside.mean() < 0.02:
                continue
            areas.append(inside.mean())
            right.append(points_inside(maps[label], inside))
            others += [points_inside(maps[other], inside) for other in present if other != label]
    assert len(right) > 60
    assert np.mean(right) > 3 * np.mean(areas)  # measured: 0.36, 0.05 by chance
    assert np.mean(right) > 2 * np.mean(others)  # 0.10

    from manylabel.data.read import load_data

    table = load_data("scenes", scenes={"train": 300, "val": 40})
    rows = {
        (r.method, r.stage): r
        for r in measure(explainer.predictor, table.subset(table.rows("val")), 12, ["final", "stage4"])
    }
    ways = {(method, stage) for method in ("grad_cam", "grad_cam_pp", "eigen_cam") for stage in ("final", "stage4")}
    assert set(rows) == {*ways, (AREA, ""), (CENTRE, "")}
    assert rows["grad_cam", "stage4"].energy > rows[AREA, ""].energy
    assert {row.images for row in rows.values()} == {12}

"""MT5: with labels that have nothing to do with the images, there is nothing to learn, and the figures must say so."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manylabel import run


@pytest.mark.slow
def test_mt5_shuffled_labels_give_chance(tmp_path: Path, tiny_settings: list[str]) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file_name", "a", "b", "c", "d", "split"])
        for i in range(2400):
            Image.fromarray(rng.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(tmp_path / "images" / f"{i}.png")
            labels = (rng.random(4) < [0.5, 0.3, 0.2, 0.1]).astype(int).tolist()
            rows.writerow([f"{i}.png", *labels, "train" if i < 1200 else "val"])
    settings = [*tiny_settings, "backbone.image_size=32", "train.epochs=10", "train.keep=last"]
    results = run.train(str(tmp_path), out=tmp_path / "run", settings=settings).results
    prevalence = np.mean([100 * row["support"] / 1200 for row in results["labels"]])
    assert results["mAP"] == pytest.approx(prevalence, abs=2)
    assert results["at_thresholds"]["OP"] < prevalence + 5

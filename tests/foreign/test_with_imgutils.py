"""A tagger's folder as dghs-imgutils reads it: the tags and scores of its bundle."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from environments import needed
from net.kept_runs import ARCHIVE, unpack

import manylabel as ml

pytestmark = pytest.mark.foreign
PHOTOS = 50


def test_the_same_tags(tmp_path: Path) -> None:
    kept = unpack(ARCHIVE, tmp_path)
    run = kept / "runs" / "hierarchy"
    folder = ml.export(run, tmp_path / "tagger", to="tagger").file.parent
    photos = sorted((kept / "photos" / "images").iterdir()) + sorted((kept / "one_each").rglob("*.png"))
    photos = photos[:PHOTOS]
    program = Path(__file__).with_name("in_imgutils.py")
    command = [needed("imgutils"), program, folder, tmp_path / "hub", *photos]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    predictor = ml.Predictor.load(run)
    theirs = predictor.predict(photos)
    assert len(theirs) == PHOTOS
    for tags, scores, meant in zip(found["tags"], found["scores"], theirs, strict=True):
        assert tags == sorted(meant.present)
        assert dict(zip(predictor.labels, scores, strict=True)) == pytest.approx(
            {entry.label: entry.score for entry in meant.labels}, abs=1e-4
        )
    assert found["embedding"] > 1
    assert found["groups"] == len(found["categories"])

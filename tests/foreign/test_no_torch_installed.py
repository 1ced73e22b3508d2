"""manylabel as `pip install manylabel` brings it, in an environment of its own: no torch anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from environments import FOLDER, needed
from net.kept_runs import ARCHIVE, PHOTOS, unpack

import manylabel as ml

pytestmark = pytest.mark.foreign
COLD = 3.0  # seconds to the first prediction, on a quiet machine
MOST = 500e6  # bytes of the environment


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [needed("without-torch"), "-m", "manylabel", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)


def test_it_predicts_evaluates_and_compares(tmp_path: Path) -> None:
    kept = unpack(ARCHIVE, tmp_path)
    file = ml.export(kept / "runs" / "full", tmp_path / "mine.onnx").file
    done = run("predict", file, *sorted(PHOTOS.iterdir()), "--json")
    assert done.returncode == 0, done.stderr
    theirs = ml.Predictor.load(kept / "runs" / "full").predict(sorted(PHOTOS.iterdir()))
    for found, meant in zip(json.loads(done.stdout), theirs, strict=True):
        assert {entry["label"] for entry in found["labels"] if entry["above"]} == set(meant.present)
    for arguments in (
        ("data", "check", kept / "photos"),
        ("report", kept / "runs" / "full", "--out", tmp_path / "report.html"),
        ("compare", kept / "runs" / "full", kept / "runs" / "linear", "--out", tmp_path / "compared"),
    ):
        assert run(*arguments).returncode == 0, arguments
    refused = run("train", kept / "photos", "--out", tmp_path / "new")
    assert refused.returncode == 2
    assert 'pip install "manylabel[train]"' in refused.stderr


def test_it_is_small_and_starts_soon(tmp_path: Path) -> None:
    kept = unpack(ARCHIVE, tmp_path)
    file, photo = ml.export(kept / "runs" / "full", tmp_path / "mine.onnx").file, next(PHOTOS.iterdir())
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        assert run("predict", file, photo).returncode == 0
        seconds.append(time.perf_counter() - start)
    assert min(seconds) <= COLD
    folder = FOLDER / "without-torch"
    size = sum(os.lstat(path).st_size for path in folder.rglob("*"))
    assert size <= MOST
    assert not list(folder.rglob("site-packages/torch"))

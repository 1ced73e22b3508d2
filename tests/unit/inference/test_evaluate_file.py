"""An exported file judged on labelled images says what its run says, without torch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import without_torch
from command import manylabel
from explained import bundle
from net.kept_runs import ARCHIVE, unpack

import manylabel as ml
from manylabel.error import ConfigError, DataError
from manylabel.exporting.export_run import export_tasks
from manylabel.inference.evaluate_file import evaluate_file

OWN = ("title", "created", "model", "notes", "trained_images", "trained_near", "warnings")  # of the file or the run


def _same(ours: Any, theirs: Any, where: str = "") -> None:
    if isinstance(theirs, dict):
        assert ours.keys() >= theirs.keys(), where
        for key, value in theirs.items():
            _same(ours[key], value, f"{where}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for i, value in enumerate(theirs):
            _same(ours[i], value, f"{where}[{i}]")
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=0.01), where
    else:
        assert ours == theirs, where


def test_the_same_figures(tmp_path: Path) -> None:
    kept = unpack(ARCHIVE, tmp_path)
    run, photos = kept / "runs" / "hierarchy", shutil.copytree(kept / "photos", tmp_path / "other")
    file = ml.export(run, tmp_path / "mine.onnx").file
    expected, _ = ml.evaluate(run, data=str(photos))
    done = without_torch.manylabel(
        tmp_path, "evaluate", file, "--data", photos, "--json", "found.json", "--report", "found.html"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    _same(
        {key: value for key, value in found.items() if key not in OWN},
        {key: value for key, value in expected.items() if key not in OWN},
    )
    assert "mAP" in done.stdout
    assert "mAP" in (tmp_path / "found.html").read_text()
    assert any("not say which images" in note for note in found["notes"])


def test_one_label_each(tmp_path: Path) -> None:
    kept = unpack(ARCHIVE, tmp_path)
    run = kept / "runs" / "single_label"
    other = shutil.copytree(kept / "one_each", tmp_path / "other")  # where the run does not know its own images again
    found, _ = evaluate_file(ml.export(run, tmp_path / "one.onnx").file, data=str(other))
    expected, _ = ml.evaluate(run, data=str(other))
    _same(found["top1"], expected["top1"])
    _same(found["labels"], expected["labels"])


def test_what_is_missing_is_said(photos: Path, tmp_path: Path) -> None:
    given = bundle("head.name=linear")
    file = export_tasks({"a": given, "b": given}, tmp_path / "two.onnx").file
    with pytest.raises(DataError, match="name them with --data"):
        evaluate_file(file, data=None)
    with pytest.raises(ConfigError, match="several tasks; choose one with --task: a, b"):
        evaluate_file(file, data=str(photos))
    with pytest.raises(ConfigError, match="no task 'c' among a, b"):
        evaluate_file(file, data=str(photos), task="c")
    with pytest.raises(DataError, match="no label in common"):
        evaluate_file(file, data=str(photos), task="a")
    with pytest.raises(ConfigError, match="settings of the data only.*'train'"):
        evaluate_file(file, data=str(photos), task="a", settings=["train.epochs=3"])
    assert manylabel("evaluate", file, "--data", photos, "--task", "c").returncode == 2

"""Figures on real photos; skipped where the data is absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manylabel import run
from manylabel.model import TaskModel


@pytest.mark.nightly  # a whole recipe: three minutes
@pytest.mark.timeout(1200)
def test_linear_probe_on_coco(coco_small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """59.1 mAP was measured with a bare script; the cache then trains heads without the backbone, in under a minute."""
    first = run.train(str(coco_small), out=tmp_path / "first", transfer="lp")
    assert first.mAP is not None
    assert first.mAP >= 58.5

    def touched(*_arguments: object) -> None:
        raise AssertionError("the backbone was used although its features are cached")

    monkeypatch.setattr(TaskModel, "features", touched)
    second = run.train(str(coco_small), out=tmp_path / "second", transfer="lp", settings=["train.seed=1"])
    assert second.mAP is not None
    assert second.mAP >= 58.5
    lines = (tmp_path / "second" / "metrics.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["seconds"] for line in lines) < 60

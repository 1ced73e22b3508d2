from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.audit import audit
from manylabel.data.read import read_table


def test_findings_of_good_data(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    findings = audit(table, workers=1)
    assert findings.trainable
    assert findings.images == 48
    assert findings.sizes == {"smallest": 96, "median": 96, "largest": 96}
    assert sum(findings.support.values()) == (table.matrix == 1).sum()
    assert list(findings.support.values()) == sorted(findings.support.values(), reverse=True)


def test_unreadable_images_and_missing_splits_are_problems(photos: Path) -> None:
    (photos / "images" / "photo003.jpg").write_bytes(b"")
    table = read_table(DataConfig(path=str(photos)))
    findings = audit(table, workers=2)
    assert not findings.trainable
    assert findings.unreadable == {"photo003.jpg": "empty file (0 bytes)"}
    assert audit(table, max_bad_share=0.05, workers=1).trainable
    only_train = replace(table, split=np.array(["train"] * 48))
    assert any("'val'" in problem for problem in audit(only_train, max_bad_share=0.05, workers=1).problems)


def test_labels_that_are_never_absent_are_a_problem(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    only_yes = replace(table, matrix=np.where(table.matrix == 1, 1, -1).astype(np.int8))
    assert any("data.blank=absent" in problem for problem in audit(only_yes, workers=1).problems)


def test_labels_on_one_side_only_are_said(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    has_red = table.matrix[:, table.labels.index("red")] == 1
    split = np.where(has_red, "val", "train")
    assert any("no training image: red" in w for w in audit(replace(table, split=split), workers=1).warnings)

"""Which labels are unseen, how they are kept out of training, and the figures of ZSL and GZSL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from manylabel.config import ZeroShotConfig
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError
from manylabel.evaluation import judge
from manylabel.labels import LabelSpace
from manylabel.metric import average_precision
from manylabel.metric.zero_shot import nearest_seen
from manylabel.zero_shot import unseen_labels, without_unseen

LABELS = LabelSpace(("cat", "dog", "hot dog", "tractor"))
MATRIX = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1]], np.int8)


def table(matrix: np.ndarray = MATRIX) -> Table:
    split = np.array(["train", "train", "train", "val"])
    return Table("things", FileSource(Path()), np.array(list("abcd")), LABELS, matrix, split)


def names(unseen: np.ndarray) -> list[str]:
    return [name for name, hidden in zip(LABELS, unseen, strict=True) if hidden]


class TestWhichLabels:
    def test_nothing_is_unseen_unless_said(self) -> None:
        assert not unseen_labels(ZeroShotConfig(), table()).any()

    def test_names(self) -> None:
        assert names(unseen_labels(ZeroShotConfig("Hot Dog, tractor"), table())) == ["hot dog", "tractor"]

    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "unseen.txt").write_text("tractor\n\n", encoding="utf-8")
        assert names(unseen_labels(ZeroShotConfig(str(tmp_path / "unseen.txt")), table())) == ["tractor"]
        with pytest.raises(ConfigError, match="cannot read"):
            unseen_labels(ZeroShotConfig("nowhere.txt"), table())

    def test_what_training_never_tells(self) -> None:
        matrix = MATRIX.copy()
        matrix[:3, 3] = -1
        assert names(unseen_labels(ZeroShotConfig("untold"), table(matrix))) == ["tractor"]
        with pytest.raises(ConfigError, match="say something about every label"):
            unseen_labels(ZeroShotConfig("untold"), table())

    def test_mistakes(self) -> None:
        with pytest.raises(ConfigError, match=r"zero_shot.unseen: .*'tractr'; did you mean 'tractor'"):
            unseen_labels(ZeroShotConfig("tractr"), table())
        with pytest.raises(ConfigError, match="nothing is left"):
            unseen_labels(ZeroShotConfig("cat, dog, hot dog, tractor"), table())


class TestTraining:
    UNSEEN = np.array([False, False, True, True])

    def test_an_unseen_label_in_training_is_an_error_that_names_image_and_label(self) -> None:
        with pytest.raises(
            DataError, match=r"training image b shows the unseen label 'hot dog'; 1 of 3 .*in_training=hide"
        ):
            without_unseen(ZeroShotConfig("x"), table(), self.UNSEEN)

    def test_hidden(self) -> None:
        hidden = without_unseen(ZeroShotConfig("x", "hide"), table(), self.UNSEEN)
        assert hidden.matrix.tolist() == [[1, 0, -1, -1], [0, 1, -1, -1], [0, 1, -1, -1], [1, 0, 1, 1]]

    def test_dropped(self) -> None:
        left = without_unseen(ZeroShotConfig("x", "drop"), table(), self.UNSEEN)
        assert left.keys.tolist() == ["a", "c", "d"]
        assert left.matrix.tolist() == [[1, 0, -1, -1], [0, 1, -1, -1], [1, 0, 1, 1]]

    def test_without_unseen_labels_the_table_is_the_same(self) -> None:
        same = table()
        assert without_unseen(ZeroShotConfig(), same, np.zeros(4, bool)) is same


def test_figures_are_those_of_the_columns() -> None:
    rng = np.random.default_rng(0)
    scores, matrix = rng.random((60, 8)), (rng.random((60, 8)) < 0.3).astype(np.int8)
    unseen, vectors = np.arange(8) >= 5, rng.normal(size=(8, 4))
    names = LabelSpace(tuple("abcdefgh"))
    given = {"fitted_here": False, "unseen": unseen, "vectors": vectors}
    figures = judge(scores, matrix, names, np.full(8, 0.5), **given)["zero_shot"]  # type: ignore[arg-type]
    ap = 100 * average_precision(scores, matrix)
    assert figures["zsl"]["mAP"] == pytest.approx(ap[5:].mean(), abs=1e-4)
    assert figures["seen"]["mAP"] == pytest.approx(ap[:5].mean(), abs=1e-4)
    assert figures["gzsl"]["mAP"] == pytest.approx(ap.mean(), abs=1e-4)
    assert figures["baselines"]["prevalence"] == pytest.approx(100 * matrix[:, 5:].mean(axis=0).mean(), abs=1e-4)
    borrowed = average_precision(scores[:, nearest_seen(vectors, unseen)], matrix[:, 5:])
    assert figures["baselines"]["nearest_seen_label"] == pytest.approx(100 * borrowed.mean(), abs=1e-4)
    assert set(figures["zsl"]["f1_at"]) == {"3"}  # there are only three of them
    top = np.argsort(-scores, axis=1)[:, :3]
    hits = np.take_along_axis(matrix, top, axis=1).sum()
    precision, recall = hits / top.size, hits / matrix.sum()
    assert figures["gzsl"]["f1_at"]["3"] == pytest.approx(200 * precision * recall / (precision + recall), abs=1e-3)


def test_nearest_seen_label_is_by_direction() -> None:
    vectors = np.array([[1.0, 0], [0, 5], [3, 0.1], [0.1, 1]])
    assert nearest_seen(vectors, np.array([False, False, True, True])).tolist() == [0, 1]

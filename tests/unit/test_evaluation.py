from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import average_precision_score, precision_score, recall_score

from manylabel.error import DataError, DecodeError
from manylabel.evaluation import details, judge
from manylabel.labels import LabelSpace
from manylabel.metric import fit_thresholds


@dataclass(frozen=True)
class Grey:
    """Images without files; one of them cannot be read."""

    def read(self, key: str, at_least: int | None = None) -> Image.Image:
        if key == "7":
            raise DecodeError("broken")
        return Image.new("RGB", (300, 200), (90, 90, 90))

    def describe(self, key: str) -> tuple[int, int]:
        return 300, 200

    def stamp(self, key: str) -> str:
        return key


LABELS = LabelSpace(("a", "b", "c", "never"))


def _case() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    matrix = (rng.random((200, 4)) < [0.5, 0.2, 0.1, 0.0]).astype(np.int8)
    scores = np.clip(0.3 * matrix + rng.random((200, 4)) * 0.7, 0, 1).astype(np.float32)
    return scores, matrix


def test_figures_agree_with_sklearn() -> None:
    scores, matrix = _case()
    figures = judge(scores, matrix, LABELS, np.full(4, 0.6), fitted_here=False)
    aps = [100 * average_precision_score(matrix[:, i], scores[:, i]) for i in range(3)]
    assert figures["mAP"] == pytest.approx(np.mean(aps), abs=1e-3)
    assert figures["labels_scored"] == 3
    assert figures["labels"][3]["ap"] is None
    decided = scores[:, :3] >= 0.6
    row = figures["labels"][1]
    assert row["precision"] == pytest.approx(100 * precision_score(matrix[:, 1], decided[:, 1]), abs=1e-3)
    assert row["recall"] == pytest.approx(100 * recall_score(matrix[:, 1], decided[:, 1]), abs=1e-3)
    assert row["support"] == matrix[:, 1].sum()
    half = scores >= 0.5
    assert figures["OP"] == pytest.approx(
        100 * precision_score(matrix, half, average="micro", zero_division=0), abs=1e-3
    )
    assert figures["mAP_interpolated"] >= figures["mAP"]
    assert "1 of 4 labels have no positive here" in figures["notes"][0]
    json.dumps(figures, allow_nan=False)


def test_unknown_entries_change_nothing() -> None:
    scores, matrix = _case()
    hidden = matrix.copy()
    hidden[:50, 0] = -1
    changed = scores.copy()
    changed[:50, 0] = np.random.default_rng(1).random(50)
    a = judge(scores, hidden, LABELS, np.full(4, 0.5), fitted_here=False)
    b = judge(changed, hidden, LABELS, np.full(4, 0.5), fitted_here=False)
    a.pop("top3"), b.pop("top3")
    assert a == b


def test_thresholds_judged_where_they_were_fitted_are_not_flattered() -> None:
    rng = np.random.default_rng(3)
    matrix = (rng.random((60, 4)) < 0.15).astype(np.int8)
    scores = rng.random((60, 4)).astype(np.float32)  # nothing to learn: any F1 above chance is flattery
    thresholds = fit_thresholds(scores, matrix)
    flattered = judge(scores, matrix, LABELS, thresholds, fitted_here=False)["at_thresholds"]["CF1"]
    honest = judge(scores, matrix, LABELS, thresholds, fitted_here=True)
    assert honest["at_thresholds"]["CF1"] < flattered
    assert any("cross-fitted" in note for note in honest["notes"])


def test_nothing_to_judge_is_an_error() -> None:
    with pytest.raises(DataError, match="no readable image"):
        judge(np.empty((0, 4), np.float32), np.empty((0, 4), np.int8), LABELS, np.full(4, 0.5), fitted_here=False)


def test_details_show_the_worst_mistakes_once_per_image() -> None:
    scores, matrix = _case()
    scores[7, :2], matrix[7, :2] = (0.01, 0.02), 1  # the worst miss, in the image that cannot be read
    shown = details(scores, matrix, LABELS, [str(i) for i in range(200)], Grey(), [])
    missed = [m for m in shown["mistakes"] if m["kind"] == "missed"]
    assert missed[0]["file"] == "7"
    assert missed[0]["label"] == "a"
    assert missed[0]["thumbnail"] is None
    assert missed[1]["thumbnail"].startswith("data:image/jpeg;base64,")
    assert len({m["file"] for m in missed}) == len(missed) <= 12
    assert shown["curves"][3] is None
    assert shown["cooccurrence"]["counts"][0][0] in matrix.sum(axis=0)
    json.dumps(shown, allow_nan=False)


def test_details_show_clear_hits_of_different_labels_and_images() -> None:
    scores, matrix = _case()
    matrix[20], scores[20] = [1, 1, 0, 0], [0.999, 0.998, 0, 0]  # the best image of two labels: shown for one
    matrix[21], scores[21] = [0, 0, 1, 0], [0, 0, 0.997, 0]
    hits = details(scores, matrix, LABELS, [str(i) for i in range(200)], Grey(), [])["hits"]
    assert [(hit["file"], hit["label"]) for hit in hits] == [("20", "a"), ("21", "c")]
    assert {hit["kind"] for hit in hits} == {"hit"}
    assert details(scores / 3, matrix, LABELS, [str(i) for i in range(200)], Grey(), [])["hits"] == []

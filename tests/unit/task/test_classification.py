"""In what one label per image differs from many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from manylabel.config import make_config
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError
from manylabel.labels import LabelSpace
from manylabel.metric import Judged, measured
from manylabel.run import resolve
from manylabel.task import MultiLabel, SingleLabel, task_of

ONE = SingleLabel("softmax")


def table(matrix: list[list[int]]) -> Table:
    keys = np.array([f"{i}.jpg" for i in range(len(matrix))])
    return Table("animals", FileSource(Path()), keys, LabelSpace(("cat", "dog", "eel")), np.array(matrix, np.int8))


def test_one_label_makes_the_others_absent() -> None:
    fitted = ONE.fit(table([[1, -1, 0], [-1, -1, -1], [0, 0, 1]]))
    assert fitted.matrix.tolist() == [[1, 0, 0], [-1, -1, -1], [0, 0, 1]]
    assert MultiLabel().fit(table([[1, -1, 0]])).matrix.tolist() == [[1, -1, 0]]


def test_two_labels_or_none_are_errors_that_name_the_image() -> None:
    with pytest.raises(DataError, match=r"1.jpg.*several labels \(cat, eel\)"):
        ONE.fit(table([[1, 0, 0], [1, 0, 1]]))
    with pytest.raises(DataError, match=r"1 images have no label, first 1.jpg"):
        ONE.fit(table([[1, 0, 0], [0, 0, 0]]))


def test_an_image_whose_label_may_be_unknown_says_nothing() -> None:
    assert ONE.fit(table([[1, 0, 0], [0, -1, -1]])).matrix.tolist() == [[1, 0, 0], [-1, -1, -1]]
    judged = ONE.fit(table([[1, 0, 0], [0, 0, 0]]), training=False)  # of a label that the model does not know
    assert judged.matrix.tolist() == [[1, 0, 0], [-1, -1, -1]]
    assert judged.notes == ("1 images have none of the model's labels and are not judged",)


def test_scores_and_decisions() -> None:
    logits = torch.tensor([[1.0, 2.0, -1.0]])
    assert torch.allclose(ONE.probabilities(logits).sum(), torch.tensor(1.0))
    assert torch.allclose(MultiLabel().probabilities(logits), torch.sigmoid(logits))
    scores = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.05]])
    assert ONE.decide(scores, np.zeros(3)).tolist() == [[False, True, False], [True, False, False]]
    assert MultiLabel().decide(scores, np.full(3, 0.3)).tolist() == [[False, True, True], [False, False, False]]


def test_what_an_epoch_is_chosen_by() -> None:
    scores, matrix = np.array([[0.9, 0.1], [0.8, 0.3]]), np.array([[1, 0], [0, 1]])
    assert ONE.goal == "top-1"
    assert measured(Judged(scores, matrix), [ONE.goal]) == {"top-1": 50.0}
    assert MultiLabel().goal == "mAP"
    assert measured(Judged(scores, matrix), [MultiLabel().goal]) == {"mAP": 100.0}


def test_the_loss_decides_the_activation() -> None:
    assert task_of(make_config(None, ["kind=single_label"]).only) == ONE  # cross entropy unless somebody says otherwise
    assert task_of(make_config(None, ["kind=single_label", "loss.name=bce"]).only) == SingleLabel()
    smooth = make_config(None, ["kind=single_label", "loss.label_smoothing=0.1"]).only
    assert (smooth.loss.name, smooth.loss.options["label_smoothing"]) == ("cross_entropy", 0.1)
    assert make_config("ml-decoder-imagenet").only.loss.name == "bce"  # a recipe's own choice stays
    with pytest.raises(ConfigError, match="kind: single_label"):
        resolve(make_config(None, ["loss.name=cross_entropy"]))


def test_a_hint_for_people_whose_images_have_one_label_each() -> None:
    assert "single_label" in (MultiLabel().hint(table([[1, 0, 0], [0, 1, 0]])) or "")
    assert MultiLabel().hint(table([[1, 0, 0], [1, 1, 0]])) is None
    assert ONE.hint(table([[1, 0, 0], [0, 1, 0]])) is None

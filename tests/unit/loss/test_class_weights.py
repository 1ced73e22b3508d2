"""Weights of the labels where an image has one of them: by their images, the root of that, and no further than the cap."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from manylabel.config import Part
from manylabel.error import ConfigError
from manylabel.loss import LOSSES

COUNTS = [1, 16, 64, 19]  # mean 25


def costs(counts: list[int] = COUNTS, **options: Any) -> list[float]:
    """Of one image of each label whose logits say nothing, as multiples of its cost without weights."""
    number = len(counts)
    given = {"positive_counts": torch.tensor(counts), "known_counts": torch.full((number,), 100)}
    x, y, known = torch.zeros(1, number), torch.eye(number), torch.ones(1, number, dtype=torch.bool)
    plain, weighted = LOSSES.build("cross_entropy"), LOSSES.build(Part("cross_entropy", options), **given)
    return [(weighted(x, row[None], known) / plain(x, row[None], known)).item() for row in y]


def test_by_how_rare_a_label_is() -> None:
    assert costs(class_weight="balanced", class_weight_cap=100.0) == pytest.approx([25, 25 / 16, 25 / 64, 25 / 19])
    assert costs(class_weight="sqrt", class_weight_cap=100.0) == pytest.approx([5, 5 / 4, 5 / 8, (25 / 19) ** 0.5])
    assert costs(class_weight="none") == pytest.approx([1, 1, 1, 1])


def test_weights_stay_between_the_cap_and_its_inverse() -> None:
    assert costs(class_weight="balanced", class_weight_cap=2.0) == pytest.approx([2, 25 / 16, 1 / 2, 25 / 19])
    assert costs([0, 50, 50, 100], class_weight="balanced") == pytest.approx([20, 1, 1, 1 / 2])


@pytest.mark.parametrize("name", ["cross_entropy", "asl_single"])
def test_without_counts_says_so(name: str) -> None:
    with pytest.raises(ConfigError, match=r"class_weight=sqrt needs the label counts"):
        LOSSES.build(Part(name, {"class_weight": "sqrt"}))


def test_weights_belong_to_the_data_and_not_to_a_checkpoint() -> None:
    counts = {"positive_counts": torch.tensor(COUNTS), "known_counts": torch.full((4,), 100)}
    loss = LOSSES.build(Part("cross_entropy", {"class_weight": "sqrt"}), **counts)
    assert [name for name, _ in loss.named_buffers()] == ["weights"]  # they follow it to another device
    assert not loss.state_dict()

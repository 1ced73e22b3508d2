"""What the attention head is for: scenes with many things in them, embedded data, no other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from manylabel import run


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_ml_decoder_sees_more_than_average_pooling(tmp_path: Path) -> None:
    data = {"path": "scenes", "scenes": {"train": 1200, "val": 400, "size": 192}}
    small = ["backbone.image_size=160"]
    longer = ["train.views=1", "train.epochs=24"]  # the recipe's eight epochs are for thousands of images
    linear = run.train(data, out=tmp_path / "linear", head="linear", settings=[*small, "train.epochs=20"])
    attention = run.train(data, out=tmp_path / "attention", head="ml_decoder", settings=[*small, *longer])
    assert linear.mAP is not None
    assert attention.mAP is not None
    assert attention.mAP > linear.mAP + 1

"""Crops of several scales against a literal list of all that there can be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from manylabel.config import AugmentConfig
from manylabel.data.augment import training_transform, varies
from manylabel.data.multi_scale import MultiScaleCrop
from manylabel.error import ConfigError
from manylabel.preprocess import Preprocess


def _every_crop(width: int, height: int, size: int) -> set[tuple[int, int, int, int]]:
    found, short = set(), min(width, height)
    sides = [int(short * scale) for scale in (1, 0.875, 0.75, 0.66, 0.5)]
    sides = [size if abs(side - size) < 3 and size <= short else side for side in sides]
    for i in range(5):
        for j in range(5):
            if abs(i - j) > 2:
                continue
            w, h = sides[j], sides[i]
            a, b = (width - w) // 4, (height - h) // 4
            corners = [(0, 0), (4 * a, 0), (0, 4 * b), (4 * a, 4 * b)]
            middles = [(2 * a, 2 * b), (0, 2 * b), (4 * a, 2 * b), (2 * a, 4 * b), (2 * a, 0)]
            quarters = [(a, b), (3 * a, b), (a, 3 * b), (3 * a, 3 * b)]
            found |= {(x, y, x + w, y + h) for x, y in corners + middles + quarters}
    return found


@pytest.mark.parametrize(("width", "height"), [(90, 61), (50, 50), (40, 120)])
def test_every_crop_is_one_of_the_list_and_all_of_them_come(
    width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes = []
    resize = Image.Image.resize

    def noted(image: Image.Image, size: tuple[int, int], resample: int, box: tuple[int, int, int, int]) -> Image.Image:
        boxes.append(box)
        return resize(image, size, resample, box)

    monkeypatch.setattr(Image.Image, "resize", noted)
    crop = MultiScaleCrop(Preprocess(32, (0.0,) * 3, (1.0,) * 3))  # type: ignore[arg-type]
    torch.manual_seed(0)
    for _ in range(4000):
        assert crop(Image.new("RGB", (width, height))).size == (32, 32)
    expected = _every_crop(width, height, 32)
    assert set(boxes) <= expected
    assert len(set(boxes)) > 0.95 * len(expected)


def test_as_a_setting() -> None:
    augment = AugmentConfig(multi_scale=True)
    assert varies(augment)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (80, 60, 3)).astype(np.uint8))
    transform = training_transform(Preprocess(32, (0.0,) * 3, (1.0,) * 3), augment)  # type: ignore[arg-type]
    assert len({transform(image).tobytes() for _ in range(20)}) > 5
    with pytest.raises(ConfigError, match=r"augment\.random_crop must be 0 with multi_scale"):
        AugmentConfig(multi_scale=True, random_crop=0.5)

"""A map over the network's square, back over the photo, for each way of getting there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import adaptive_avg_pool2d

from manylabel.data.transform import evaluation_transform
from manylabel.explain.frame import Frame
from manylabel.preprocess import Preprocess


def _preprocess(resize: str, size: int = 128) -> Preprocess:
    return Preprocess(size, (0.5,) * 3, (0.5,) * 3, resize=resize)


@pytest.mark.parametrize("resize", ["stretch", "crop", "pad"])
@pytest.mark.parametrize("size", [(300, 180), (180, 300), (200, 200), (400, 130)])
@pytest.mark.parametrize("offset", [(0.0, 0.0), (-0.12, 0.15), (0.2, -0.1)])
def test_what_the_model_sees_comes_back_to_its_place(
    resize: str, size: tuple[int, int], offset: tuple[float, float]
) -> None:
    """A white square goes through the real transform; its brightness on a grid is the map."""
    width, height = size
    short = min(size)
    side = short // 4
    left, top = (round(length / 2 + share * short - side / 2) for length, share in zip(size, offset, strict=True))
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[top : top + side, left : left + side] = 255
    preprocess = _preprocess(resize)
    tensor = torch.from_numpy(evaluation_transform(preprocess)(Image.fromarray(pixels)))[:1].float()  # [1, S, S]
    bars = evaluation_transform(preprocess)(Image.new("RGB", size))[:1]  # of padding, where they are grey
    grid = adaptive_avg_pool2d(tensor - bars, 64).numpy()
    spread = Frame.of(preprocess, width, height).spread(grid, width, height)[0]
    assert spread.shape == (height, width)
    seen = spread / spread.sum()
    x = float((seen.sum(axis=0) * (np.arange(width) + 0.5)).sum())
    y = float((seen.sum(axis=1) * (np.arange(height) + 0.5)).sum())
    assert abs(x - (left + side / 2)) <= 0.01 * max(size)
    assert abs(y - (top + side / 2)) <= 0.01 * max(size)
    assert seen[top : top + side, left : left + side].sum() > 0.7


def test_what_a_crop_cut_off_is_zero() -> None:
    preprocess = _preprocess("crop")
    spread = Frame.of(preprocess, 400, 100).spread(np.ones((1, 4, 4), np.float32), 400, 100)[0]
    kept = 0.875 * 100
    columns = np.flatnonzero(spread.any(axis=0))
    rows = np.flatnonzero(spread.any(axis=1))
    assert len(columns) == pytest.approx(kept, abs=1.5)
    assert len(rows) == pytest.approx(kept, abs=1.5)
    assert columns.mean() == pytest.approx(199.5, abs=0.6)
    assert spread[50, 200] == pytest.approx(1, abs=1e-5)


def test_bars_of_padding_do_not_come_back() -> None:
    """Heat in the grey bars above and below lies nowhere in the photo."""
    grid = np.zeros((1, 8, 8), np.float32)
    grid[0, 0], grid[0, 7] = 1, 1
    spread = Frame.of(_preprocess("pad"), 400, 100).spread(grid, 400, 100)[0]
    assert spread.max() < 0.01
    assert Frame.of(_preprocess("pad"), 400, 100) == Frame(0.0, 0.375, 1.0, 0.625)


def test_maps_never_become_negative() -> None:
    grid = np.zeros((1, 7, 7), np.float32)
    grid[0, 3, 3] = 1
    spread = Frame(0, 0, 1, 1).spread(grid, 90, 70)
    assert spread.min() >= 0
    row, column = np.unravel_index(spread[0].argmax(), (70, 90))
    assert row in (34, 35)
    assert column in (44, 45)

"""Resizing in the graph is Pillow's: the same pixels but where a value lies on the edge between two grey levels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from PIL import Image

from manylabel.data.transform import evaluation_transform
from manylabel.exporting.pillow_resize import square
from manylabel.preprocess import INTERPOLATIONS, RESIZES, Preprocess

SIDES = [(64, 64), (97, 131), (131, 97), (500, 64), (64, 500), (7, 5), (1, 1), (2, 300), (65, 63), (201, 200), (33, 32)]
SIDES += [(130, 97), (300, 181), (300, 183), (97, 80)]  # beside the sizes where Pillow turns to the other order


@pytest.mark.parametrize(("how", "interpolation"), itertools.product(RESIZES, INTERPOLATIONS))
@pytest.mark.parametrize("share", [0.875, 1.0, 0.3, 1.2])
def test_the_same_pixels(how: str, interpolation: str, share: float) -> None:
    if how != "crop" and share != 0.875:
        pytest.skip("only for a crop")
    preprocess = Preprocess(64, (0.5,) * 3, (0.5,) * 3, interpolation, how, share)
    rng = np.random.default_rng(0)
    for height, width in SIDES:
        pixels = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)  # noise: the hardest case
        expected = evaluation_transform(preprocess)(Image.fromarray(pixels)).astype(int)
        found = square(torch.from_numpy(pixels), preprocess)[0].numpy()
        assert np.array_equal(found, np.round(found))
        gap = np.abs(found - expected)
        assert gap.max() <= 2, (height, width)
        assert (gap > 0).mean() < 0.1, (height, width)  # on the edge between two levels, as an enlarged one often is

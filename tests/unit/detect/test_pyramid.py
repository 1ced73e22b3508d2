from __future__ import annotations

import pytest
import torch

from manylabel.detect.pyramid import Levels, Pyramid


@pytest.mark.parametrize(
    ("patch", "levels", "cells"),
    [
        (16, (4, 2, 1, 0.5), [(20, 28), (10, 14), (5, 7), (3, 4)]),
        (14, (2, 1), [(10, 14), (5, 7)]),
        (8, (1, 0.5, 0.25), [(5, 7), (3, 4), (2, 2)]),
    ],
)
def test_levels_are_multiples_of_the_map(patch: int, levels: tuple[float, ...], cells: list[tuple[int, int]]) -> None:
    pyramid = Pyramid(24, 10, levels, patch)
    found = pyramid(torch.randn(2, 24, 5, 7))
    assert [tuple(each.shape) for each in found.maps] == [(2, 10, *grid) for grid in cells]
    assert found.strides == tuple(patch / level for level in levels)


def ramp(cells: int, stride: float) -> torch.Tensor:
    """A map whose two channels hold x and y of each cell's centre in pixels."""
    centre = (torch.arange(cells) + 0.5) * stride
    return torch.stack(torch.meshgrid(centre, centre, indexing="xy"))[None]


@pytest.mark.parametrize("stride", [4.0, 3.5])
def test_a_crop_shows_what_is_under_the_box(stride: float) -> None:
    levels = Levels(
        tuple(ramp(int(64 // 2**n), stride * 2**n) for n in range(3)), tuple(stride * 2**n for n in range(3))
    )
    boxes = torch.tensor([[30.0, 40.0, 70.0, 100.0], [20.0, 20.0, 190.0, 160.0], [60.0, 60.0, 66.0, 63.0]])
    crops = levels.crop([boxes], 7)  # of several levels: each must give the same coordinates
    for box, crop in zip(boxes, crops, strict=True):
        x, y = (torch.linspace(float(box[i]), float(box[i + 2]), 15)[1::2] for i in (0, 1))
        torch.testing.assert_close(crop[0], x.expand(7, 7), atol=1e-3, rtol=0)
        torch.testing.assert_close(crop[1], y[:, None].expand(7, 7), atol=1e-3, rtol=0)


def test_larger_regions_come_from_coarser_levels_and_keep_their_order() -> None:
    levels = Levels(tuple(torch.full((2, 1, 100, 100), float(n)) for n in range(3)), (4, 8, 16))
    boxes = torch.tensor([[0.0, 0.0, side, side] for side in (10.0, 300.0, 60.0, 130.0)])
    crops = levels.crop([boxes[:1], boxes[1:]], 1)
    assert crops.flatten().tolist() == [0, 2, 0, 1]  # the coarsest level in which a box is 14 cells wide


def test_images_without_boxes_have_no_crops() -> None:
    levels = Levels((torch.randn(2, 3, 8, 8),), (4,))
    assert levels.crop([torch.zeros(0, 4), torch.zeros(0, 4)], 7).shape == (0, 3, 7, 7)

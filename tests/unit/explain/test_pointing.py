from __future__ import annotations

import numpy as np
import pytest

from manylabel.explain.pointing import box_area, energy_inside, points_inside


def test_boxes_are_in_shares_of_the_photo() -> None:
    inside = box_area(np.array([[0.5, 0.0, 1.0, 0.5], [0.0, 0.75, 0.25, 1.0]]), 8, 4)
    expected = np.zeros((4, 8), bool)
    expected[:2, 4:] = True
    expected[3, :2] = True
    np.testing.assert_array_equal(inside, expected)


def test_pointing_and_energy() -> None:
    inside = np.zeros((4, 4), bool)
    inside[1:3, 1:3] = True
    heat = np.zeros((4, 4), np.float32)
    heat[2, 2], heat[0, 0] = 3, 1
    assert points_inside(heat, inside)
    assert energy_inside(heat, inside) == pytest.approx(0.75)
    heat[0, 0] = 9
    assert not points_inside(heat, inside)
    assert energy_inside(heat, inside) == pytest.approx(0.25)


def test_an_empty_map_points_nowhere() -> None:
    everywhere = np.ones((3, 3), bool)
    assert not points_inside(np.zeros((3, 3)), everywhere)
    assert energy_inside(np.zeros((3, 3)), everywhere) == 0

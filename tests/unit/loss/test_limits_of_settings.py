"""A setting may take the limits that its error names, and nothing beyond them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from manylabel.config import Part
from manylabel.error import ConfigError
from manylabel.loss import LOSSES

BELOW_ONE = math.nextafter(1.0, 0.0)


@pytest.mark.parametrize(
    ("name", "setting", "allowed", "refused"),
    [
        *(
            (name, setting, allowed, refused)
            for name in ("bce", "focal", "asl")
            for setting, allowed, refused in [
                ("label_smoothing", [0.0, BELOW_ONE], [-1e-9, 1.0]),
                ("positive_weight_cap", [1.0, 1e9], [BELOW_ONE, math.inf]),
                ("unknown_weight", [1e-9, 1e9], [0.0, math.inf]),
                ("unknown_gamma", [None, 0.0, 1e9], [-1e-9, math.inf]),
                ("selective_prior", [0.0, 1.0], [-1e-9, 1.0 + 1e-9]),
                ("selective_top_k", [0, 10**9], [-1]),
            ]
        ),
        ("focal", "gamma", [0.0, 1e9], [-1e-9, math.inf]),
        ("focal", "alpha", [None, 1e-9, BELOW_ONE], [0.0, 1.0]),
        ("asl", "gamma_negative", [0.0, 1e9], [-1e-9, math.inf]),
        ("asl", "gamma_positive", [0.0, 1e9], [-1e-9, math.inf]),
        ("asl", "clip", [0.0, BELOW_ONE], [-1e-9, 1.0]),
        *(
            (name, setting, allowed, refused)
            for name in ("cross_entropy", "asl_single")
            for setting, allowed, refused in [
                ("label_smoothing", [0.0, BELOW_ONE], [-1e-9, 1.0]),
                ("class_weight_cap", [1.0, 1e9], [BELOW_ONE, math.inf]),
            ]
        ),
        ("asl_single", "gamma_negative", [0.0, 1e9], [-1e-9, math.inf]),
        ("asl_single", "gamma_positive", [0.0, 1e9], [-1e-9, math.inf]),
    ],
)
def test_limits(name: str, setting: str, allowed: list[Any], refused: list[Any]) -> None:
    for value in allowed:
        assert getattr(LOSSES.options(Part(name, {setting: value})), setting) == value
    for value in refused:
        with pytest.raises(ConfigError, match=f"loss.{setting}"):
            LOSSES.options(Part(name, {setting: value}))

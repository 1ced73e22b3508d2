"""Settings of adaptive selection may take the limits that their errors name, and nothing beyond them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from manylabel.config import make_config
from manylabel.error import ConfigError

BELOW_ONE = math.nextafter(1.0, 0.0)


def adapt(**values: Any) -> Any:
    return make_config({"data": {"path": "scenes"}, "train": {"adapt": values}}).train.adapt


@pytest.mark.parametrize(
    ("setting", "allowed", "refused"),
    [
        ("every", [1], [0, -1]),
        ("patience", [1], [0, -1]),
        ("start", [0], [-1]),
        ("max_experts", [0, 1], [-1]),
        ("min_decrease", [0.0, BELOW_ONE], [-1e-9, 1.0]),
        ("held_out", [None, 1e-9, BELOW_ONE], [0.0, 1.0]),
    ],
)
def test_limits(setting: str, allowed: list[Any], refused: list[Any]) -> None:
    for value in allowed:
        assert getattr(adapt(**{setting: value}), setting) == value
    for value in refused:
        with pytest.raises(ConfigError, match=rf"train\.adapt\.{setting}"):
            adapt(**{setting: value})


def test_nothing_adapts_unless_it_is_asked_to() -> None:
    assert not adapt().enabled
    assert adapt(enabled=True).enabled

"""Settings of adaptive selection may take the limits that their errors name, and nothing beyond them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from manylabel.error import ConfigError
from manylabel.multitask.settings import make_multitask_config

TASKS = {"labels": {"kind": "multi_label", "data": {"path": "scenes"}}}
BELOW_ONE = math.nextafter(1.0, 0.0)


def selection(**values: Any) -> Any:
    return make_multitask_config({"tasks": TASKS, "vit": {"size": "tiny"}, "selection": values}).selection


@pytest.mark.parametrize(
    ("setting", "allowed", "refused"),
    [
        ("k", [1], [0, -1]),
        ("every", [1], [0, -1]),
        ("patience", [1], [0, -1]),
        ("start", [0], [-1]),
        ("most", [0, 1], [-1]),
        ("least", [0.0, BELOW_ONE], [-1e-9, 1.0]),
        ("held_out", [1e-9, BELOW_ONE], [0.0, 1.0]),
    ],
)
def test_limits(setting: str, allowed: list[Any], refused: list[Any]) -> None:
    for value in allowed:
        assert getattr(selection(**{setting: value}), setting) == value
    for value in refused:
        with pytest.raises(ConfigError, match=f"selection.{setting}"):
            selection(**{setting: value})


def test_tasks_find_their_own_number_unless_they_are_not_asked_to() -> None:
    assert selection().adaptive
    assert not selection(adaptive=False).adaptive

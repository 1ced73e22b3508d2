"""Real data sets are read as they always were, down to the pixels of their masks; and a difference would be seen."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import SHARED
from net.tables import FILE, SHARED_FACTS, facts, pixels_of_masks

from manylabel import load_data


@pytest.mark.parametrize("name", ["coco14-small", "voc12-small"])
def test_real_data_are_read_as_they_were(name: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip(f"needs the real sample beside the repository (../shared/data/{name})")
    table = load_data(SHARED / name)
    found = facts(table, str(SHARED))
    if table.objects is not None:
        found["pixels"] = pixels_of_masks(table.subset(table.rows("val")))
    assert found == json.loads(SHARED_FACTS.read_text(encoding="utf-8"))[name]


def test_every_format_and_most_tests_of_readers_are_frozen() -> None:
    frozen = json.loads(FILE.read_text(encoding="utf-8"))
    formats = [test for test in frozen if "test_every_format.py::test_a_table_is_read_back_equal" in test]
    assert len(formats) >= 18
    assert sum(map(len, frozen.values())) > 800


def test_a_difference_in_any_part_is_seen(photos: Path) -> None:
    table = load_data(photos)
    first = facts(table)
    other = table.matrix.copy()
    other[3, 1] = -1
    changed = {
        "matrix": {"matrix": other},
        "keys": {"keys": table.keys[::-1]},
        "split": {"split": np.array(["train"] * len(table))},
        "groups": {"groups": np.array(["a"] * len(table))},
        "sizes": {"sizes": np.ones((len(table), 2), np.int32)},
        "notes": {"notes": ("another note about 17 images",)},
    }
    for part, change in changed.items():
        second = facts(dataclasses.replace(table, **change))  # type: ignore[arg-type]
        assert first.get(part) != second[part]

"""Images that look alike, but have different labels: exact copies, near ones, and copies of near ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit_photos import photo, table_of, write

from manylabel.data.audit import audit, contradictions
from manylabel.data.table import Table


@pytest.fixture
def alike(tmp_path: Path) -> Table:
    """One photo in three sizes, the first of them twice; and another photo in two."""
    files = {"a.png": photo(1), "copy.png": photo(1), "b.png": photo(1).resize((200, 150))}
    files |= {"c.png": photo(1).resize((160, 120)), "x.png": photo(2), "y.png": photo(2).resize((200, 150))}
    return table_of(write(tmp_path, files), {name: ["cat"] for name in files} | {"x.png": ["dog", "cow"]})


def found_in(table: Table, said: dict[str, tuple[int, int, int]]) -> list[tuple[Any, ...]]:
    """(kind, images, labels) where these images have these entries for cat, cow and dog, and all others are unknown."""
    matrix = np.full((len(table), 3), -1, np.int8)
    for key, entries in said.items():
        matrix[table.keys.tolist().index(key)] = entries
    groups = audit(replace(table, matrix=matrix), workers=1).contradictions["groups"]
    assert all(group["size"] == len(group["images"]) for group in groups)
    return [(group["kind"], sorted(group["images"]), group["labels"]) for group in groups]


def test_near_images_with_different_labels(alike: Table) -> None:
    assert found_in(alike, {"x.png": (1, 0, 1), "y.png": (1, 1, -1)}) == [("near", ["x.png", "y.png"], ["cow"])]
    assert found_in(alike, {"x.png": (1, 0, -1), "y.png": (1, 0, 1)}) == []


def test_the_unknown_never_contradicts(alike: Table) -> None:
    assert found_in(alike, {"x.png": (1, 0, 1)}) == []
    assert found_in(alike, {"x.png": (1, -1, 0), "y.png": (-1, 1, 0)}) == []


def test_what_a_copy_says_is_said_of_the_image(alike: Table) -> None:
    """a.png itself says nothing; the near pair is between it and b.png, for its copy comes later."""
    assert found_in(alike, {"copy.png": (1, 0, 0), "b.png": (0, 0, 0)}) == [
        ("near", ["a.png", "b.png", "copy.png"], ["cat"])
    ]


def test_copies_that_disagree_are_said_once(alike: Table) -> None:
    said = {"a.png": (1, 0, 0), "copy.png": (0, 0, 0), "b.png": (1, 0, 0), "c.png": (0, 0, 0)}
    exact, near = found_in(alike, said)
    assert exact == ("exact", ["a.png", "copy.png"], ["cat"])
    assert near == ("near", ["b.png", "c.png"], ["cat"])  # and neither of them against the copies that disagree


def test_pairs_that_share_an_image_are_one_group(alike: Table) -> None:
    said = {"a.png": (1, 0, 0), "b.png": (0, 0, 0), "c.png": (1, 1, 0)}
    assert found_in(alike, said) == [("near", ["a.png", "b.png", "c.png", "copy.png"], ["cat", "cow"])]


def test_many_pairs_are_looked_at_a_part_at_a_time(alike: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"a.png": (1, 0, 0), "b.png": (0, 0, 0), "x.png": (0, 0, 1), "y.png": (0, 0, 0)}
    whole = found_in(alike, said)
    assert len(whole) == 2
    monkeypatch.setattr(contradictions, "CELLS", 1)
    assert found_in(alike, said) == whole

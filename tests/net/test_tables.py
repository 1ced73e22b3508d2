"""Real data sets are read as they always were, down to the pixels of their masks; and a difference would be seen."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHARED, TABLES
from net.tables import FILE, SHARED_FACTS, Watch, facts, pixels_of_masks

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
    assert len(formats) >= 15
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


def test_every_frozen_test_is_still_there() -> None:
    """One that has another name now would not be compared with anything."""
    assert not TABLES.gone(), "run `make freeze`"


# --- the watch ----------------------------------------------------------------------------------------------------

ONE, OTHER = {"images": 3, "keys": "a"}, {"images": 4, "keys": "a"}


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """Of a frozen file that knows three tests in two files."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).touch()
    frozen = {"a.py::test_two": [ONE, OTHER], "a.py::test_one": [ONE], "b.py::test_b": [ONE]}
    (tmp_path / "tables.json").write_text(json.dumps(frozen), encoding="utf-8")
    return Watch(tmp_path / "tables.json", tmp_path)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([ONE, OTHER], []),
        ([ONE], ["this test read 2 tables and reads 1 now"]),
        ([], ["this test read 2 tables and reads 0 now"]),
        ([ONE, OTHER, ONE], ["this test read 2 tables and reads 3 now"]),
        ([ONE, ONE], ["table 2 of this test, images: 4 → 3"]),
        ([ONE, {**OTHER, "groups": "b"}], ["table 2 of this test, groups: None → b"]),
    ],
)
def test_other_tables_than_the_frozen_ones_are_told(watch: Watch, seen: list[dict[str, Any]], said: list[str]) -> None:
    watch.seen = seen
    assert watch.differences("a.py::test_two") == said


def test_a_test_that_nobody_froze_is_new_where_it_reads_tables(watch: Watch) -> None:
    watch.seen = []
    assert not watch.is_new("a.py::test_new")
    watch.seen = [ONE]
    assert watch.is_new("a.py::test_new")
    assert not watch.is_new("a.py::test_one")
    assert watch.differences("a.py::test_new") == []


def test_what_a_run_did_not_look_at_stays_frozen(watch: Watch) -> None:
    watch.collected = {"a.py::test_one", "a.py::test_renamed"}
    assert watch.gone() == ["a.py::test_two"]
    watch.seen = [OTHER]
    watch.keep("a.py::test_renamed")
    watch.seen.append(ONE)  # by a fixture of the test after it
    watch.write()
    told = {"a.py::test_one": [ONE], "a.py::test_renamed": [OTHER], "b.py::test_b": [ONE]}
    assert json.loads(watch.file.read_text(encoding="utf-8")) == told
    again = Watch(watch.file, watch.root)
    again.keep("a.py::test_one")  # which reads nothing any more
    (watch.root / "b.py").unlink()
    assert again.gone() == ["b.py::test_b"]
    again.write()
    assert set(json.loads(watch.file.read_text(encoding="utf-8"))) == {"a.py::test_renamed"}

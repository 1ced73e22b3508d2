"""The same rows mean the same in every form: marks, blanks and delimiters."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from labelled_files import put_images

from manylabel.config import DataConfig
from manylabel.data.read import read_table
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

Rows = list[dict[str, Any]]
NAMES = ("a.jpg", "b.jpg", "c.jpg", "d.jpg")


def _sheet(separator: str) -> Callable[[Path, Rows], None]:
    def write(path: Path, rows: Rows) -> None:
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, delimiter=separator)
            out.writerow(rows[0])
            out.writerows([["" if value is None else value for value in row.values()] for row in rows])

    return write


def _lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _parquet(path: Path, rows: Rows) -> None:
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    texts = [{key: None if value is None else str(value) for key, value in row.items()} for row in rows]
    parquet.write_table(pyarrow.Table.from_pylist(texts), path)


FORMS: dict[str, tuple[str, Callable[[Path, Rows], None]]] = {
    "labels.csv": ("csv", _sheet(",")),
    "labels.tsv": ("csv", _sheet("\t")),
    "labels.jsonl": ("jsonl", _lines),
    "labels.json": ("json", lambda path, rows: path.write_text(json.dumps(rows), encoding="utf-8") and None),
    "labels.parquet": ("parquet", _parquet),
    "metadata.csv": ("imagefolder", _sheet(",")),
    "metadata.jsonl": ("imagefolder", _lines),
    "metadata.parquet": ("imagefolder", _parquet),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_images(tmp_path_factory.mktemp("forms"), *NAMES)


def _read(folder: Path, form: str, rows: Rows, **options: Any) -> tuple[tuple[str, ...], list[list[int]], list[str]]:
    kind, write = FORMS[form]
    path = folder / form
    write(path, rows)
    table = read_table(DataConfig(path=str(path), format=kind, **options))
    path.unlink()
    assert table.keys.tolist() == list(NAMES[: len(rows)])
    return table.labels.names, table.matrix.tolist(), [note for note in table.notes if "-1" in note]


YES, NO, OPEN = ("1", "1.0", "true", "yes", "x", "X", "TRUE"), ("0", "0.0", "false", "no", "No"), ("?",)
cells = st.sampled_from([*YES, *NO, *OPEN, "-1", None])


def _meant(rows: Rows, blank: str) -> list[list[int]]:
    """Written out plainly: what the marks of a wide table mean."""
    found = {value for row in rows for name, value in row.items() if name != "file_name"}
    minus = ABSENT if not found & {*NO, None} else UNKNOWN
    meaning = dict.fromkeys(YES, PRESENT) | dict.fromkeys(NO, ABSENT) | dict.fromkeys(OPEN, UNKNOWN) | {"-1": minus}
    meaning[None] = ABSENT if blank == "absent" else UNKNOWN  # type: ignore[index]
    return [[meaning[value] for name, value in row.items() if name != "file_name"] for row in rows]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(cells, cells), min_size=3, max_size=3),
    st.sampled_from(YES),
    st.sampled_from(["unknown", "absent"]),
)
def test_marks_mean_the_same_in_every_form(
    folder: Path, drawn: list[tuple[str | None, str | None]], yes: str, blank: str
) -> None:
    marks = [*drawn, (yes, yes)]  # a label that nobody is sure of is none in a form with other fields
    rows: Rows = [{"file_name": n, "cat": c, "dog": d} for n, (c, d) in zip(NAMES, marks, strict=True)]
    for form in FORMS:
        names, matrix, _ = _read(folder, form, rows, blank=blank)
        assert names == ("cat", "dog"), form
        assert matrix == _meant(rows, blank), form


@pytest.mark.parametrize("form", FORMS)
def test_minus_one_is_absent_beside_nothing_but_one_and_that_is_said(folder: Path, form: str) -> None:
    def read(*marks: Any) -> tuple[list[list[int]], list[str]]:
        rows: Rows = [{"file_name": name, "cat": mark} for name, mark in zip(NAMES, marks, strict=False)]
        return _read(folder, form, rows)[1:]

    assert read(1, -1, 1) == ([[1], [ABSENT], [1]], ["-1 is taken for absent, because no cell is 0 or blank"])
    assert read(1, -1, 0) == ([[1], [UNKNOWN], [0]], [])
    assert read(1, -1, None) == ([[1], [UNKNOWN], [UNKNOWN]], [])


def test_numbers_truth_values_and_gaps_mean_what_their_texts_mean(folder: Path) -> None:
    rows: Rows = [{"file_name": "a.jpg", "cat": True, "dog": 1.0}, {"file_name": "b.jpg", "cat": -1, "dog": -1.0}]
    assert _read(folder, "labels.jsonl", rows)[1] == [[1, 1], [ABSENT, ABSENT]]
    rows.append({"file_name": "c.jpg", "dog": 1})  # a field that a row lacks is blank
    assert _read(folder, "labels.jsonl", rows)[1] == [[1, 1], [UNKNOWN, UNKNOWN], [UNKNOWN, 1]]
    rows[2]["cat"] = False
    assert _read(folder, "labels.jsonl", rows)[1] == [[1, 1], [UNKNOWN, UNKNOWN], [0, 1]]


words = st.sampled_from(["cat", "dog", "traffic light", "bird", "hot dog"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(words, unique=True, max_size=3), min_size=3, max_size=3),
    st.sampled_from(["|", ";", ",", " | "]),
    st.sampled_from(["labels", "tags", "classes"]),
    st.booleans(),
)
def test_delimited_labels_mean_the_same_in_every_form(
    folder: Path, drawn: list[list[str]], delimiter: str, column: str, states: bool
) -> None:
    given_labels = [["cat", "dog"], *drawn]
    rows: Rows = [{"file_name": n, column: delimiter.join(g)} for n, g in zip(NAMES, given_labels, strict=True)]
    rest = [[name for name in ("bird", "cat") if name not in g] for g in given_labels]
    if states:
        rows = [row | {"absent_labels": delimiter.join(r[:1])} for row, r in zip(rows, rest, strict=True)]
    found = [_read(folder, form, rows) for form in FORMS]
    assert all(each == found[0] for each in found)
    names, matrix, _ = found[0]
    present = [[int(name in g) for name in names] for g in given_labels]
    assert (np.array(matrix) == 1).astype(int).tolist() == present

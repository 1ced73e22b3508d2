"""Labels that are hard to write: what a writer writes is read back equal, or it is refused while it is written."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command import manylabel
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.bad_images import BadImages
from manylabel.data.read import read_table
from manylabel.data.read.split_file import read_parts, write_split_file
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.data.write import TARGETS
from manylabel.data.write.csv import choose_delimiter
from manylabel.data.write.from_table import content_of
from manylabel.data.write.label_studio import labelling_config
from manylabel.error import DataError
from manylabel.inference.prediction import LabelScore, Prediction
from manylabel.labels import LabelSpace
from manylabel.prediction_file import csv_file
from manylabel.spreadsheet import plain_cell, safe_cell

ODD = [
    *("\n", "\r", "\t", "|", ";", ",", '"', "'", "=", "+", "-", "@", " ", "\ufeff", "\0", "\x01", "\x0b", "\x1b"),
    *(
        "\x1c",
        "\x85",
        "\u2028",
        "\u202e",
        "\ud800",
        "\udcff",
        "\ufffe",
        "[",
        "]",
        "{",
        "<",
        "&",
        "#",
        "\\",
        "a",
        "b",
        "é",
    ),
]
names = st.lists(st.sampled_from(ODD), min_size=1, max_size=5).map("".join)
quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
MIXED = ("cat", "dog", "two words")


def _table(folder: Path, odd: str) -> Table:
    """Four images; the odd label stands alone, beside another, last and nowhere."""
    labels = LabelSpace((*MIXED, odd))
    keys = [f"{number}.jpg" for number in range(4)]
    for number, key in enumerate(keys):
        Image.new("RGB", (16, 16), (60 * number, 0, 0)).save(folder / key)
    matrix = np.array([[0, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0], [1, 1, 0, 1]], np.int8)
    return Table("odd", FileSource(folder), np.array(keys), labels, matrix, notes=())


def _written(to: str, table: Table, out: Path) -> tuple[str, str]:
    """The notes of the writer, or why it did not write."""
    try:
        return "\n".join(TARGETS[to].write(content_of(table, "copy"), out)), ""
    except DataError as error:
        return "", str(error)


def _said(table: Table) -> dict[str, set[str]]:
    return {
        Path(key).name: {table.labels.names[i] for i in np.flatnonzero(row == 1)}
        for key, row in zip(table.keys, table.matrix, strict=True)
    }


@pytest.mark.parametrize("to", sorted(TARGETS))
@quick
@example("two\nlines")
@example("=1+1")
@example("'=1")
@example(" cat")
@example("a|b;c,d\te")
@example("['x']")
@example("\x85x")
@example("nul\0")
@example("control\x01")
@example("half\ud800")
@given(odd=names)
def test_a_label_is_read_back_equal_or_refused_when_it_is_written(to: str, odd: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place) / "from", Path(place) / "to"
        folder.mkdir()
        try:
            table = _table(folder, odd)
        except DataError:
            return  # no label at all
        notes, refused = _written(to, table, out)
        if refused:
            assert repr(odd) in refused or "every delimiter" in refused
            assert not [path for path in out.rglob("*") if path.suffix in (".csv", ".json", ".jsonl", ".xml")]
            return
        told = dict(re.findall(r"--set '?data\.(delimiter|labels)=(.+?)'?$", notes, re.MULTILINE))
        again = read_table(DataConfig(path=str(out), format=to, allow_markup=True, **told))
        assert _said(again) == _said(table)


@quick
@given(st.dictionaries(names, st.sampled_from(["train", "val"]), min_size=1))
def test_a_split_file_is_read_back_equal_or_refused(parts: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "split.csv"
        try:
            write_split_file(path, parts)
        except DataError:
            assert not path.exists()
            return
        assert read_parts(path) == parts


@quick
@given(st.dictionaries(names.filter(lambda name: not re.search("[\ud800-\udfff]", name)), names, min_size=1))
def test_a_list_of_bad_images_is_read_back_equal(reasons: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "bad_images.csv"
        found = BadImages(100, 1.0, path)
        found.add(reasons.items())
        again = BadImages(100, 1.0, path)
        again.recall()
        assert list(again.reasons) == list(found.reasons)


@given(st.text())
def test_a_cell_comes_back(text: str) -> None:
    assert plain_cell(safe_cell(text)) == text


@given(names)
def test_the_labelling_config_is_valid_xml_or_refused(odd: str) -> None:
    valid = all(c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" for c in odd)
    if not valid:
        with pytest.raises(DataError, match="cannot; rename the label"):
            labelling_config(["cat", odd], boxes=True)
        return
    root = ElementTree.fromstring(labelling_config(["cat", odd], boxes=True).encode("utf-8"))
    assert [element.get("value") for element in root.iter("Choice")] == ["cat", odd]


@quick
@given(names)
def test_a_predicted_label_is_read_back_equal_or_refused(odd: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "tags.csv"
        Image.new("RGB", (16, 16)).save(Path(place) / "a.jpg")
        try:
            labels = LabelSpace((odd, "cat"))
        except DataError:
            return  # no label at all
        scores = tuple(LabelScore(name, 0.9, 0.5, True) for name in labels)
        refused = ""
        try:
            with csv_file(path, tuple(labels)) as add:
                add(Prediction("a.jpg", scores))
        except DataError as error:
            refused = str(error)
        if refused:
            assert repr(odd) in refused or "every delimiter" in refused
            assert not path.exists()
            return
        more = {"ignore_columns": ("scores", "error"), "delimiter": choose_delimiter(labels)}
        again = read_table(DataConfig(path=str(path), allow_markup=True, **more))
        assert set(again.labels) == set(labels)


def test_labels_with_newlines_or_control_characters_are_refused_by_the_commands(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        Image.new("RGB", (16, 16), (60 * number, 0, 0)).save(data / f"{number}.jpg")
    rows = ['{"file_name": "%d.jpg", "labels": ["cat", "%s"]}' % (n, "a\\nb" if n else "c\\u0001d") for n in range(3)]  # noqa: UP031
    (data / "labels.jsonl").write_text("\n".join(rows))
    options = ("--set", "data.allow_markup=true")
    for to, why in (("csv", "a sheet cannot hold; rename it"), ("label-studio", "cannot; rename the label")):
        done = manylabel("data", "convert", data, tmp_path / to, "--to", to, *options)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr
        assert not [path for path in (tmp_path / to).rglob("*") if path.suffix in (".csv", ".json", ".xml")]
    done = manylabel("data", "convert", data, tmp_path / "coco", "--to", "coco", *options)
    assert done.returncode == 0, done.stderr

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from manylabel.config import DataConfig
from manylabel.data.read import read_table
from manylabel.data.read.columns import LabelCells
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

Make = Callable[[str], Path]


def _read(path: Path, **changes: object) -> object:
    return read_table(replace(DataConfig(path=str(path)), **changes))  # type: ignore[arg-type]


def _delimiter(cells: list[str]) -> str | None:
    return LabelCells(cells).delimiter()


def test_delimited_labels_with_splits_and_an_image_without_labels(make_csv: Make) -> None:
    path = make_csv("file_name,labels,split\na.jpg,dog|traffic light,train\nb.jpg,,validation\nc.jpg,dog,train\n")
    table = read_table(DataConfig(path=str(path.parent)))
    assert table.labels.names == ("dog", "traffic light")
    assert table.matrix.tolist() == [[PRESENT, PRESENT], [ABSENT, ABSENT], [PRESENT, ABSENT]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "val", "train"]
    assert "labels separated by '|'" in table.notes


@pytest.mark.parametrize("delimiter", ["|", ";", ","])
def test_delimiters_are_detected(make_csv: Make, delimiter: str) -> None:
    table = _read(make_csv(f'file_name,labels\na.jpg,"x{delimiter} y"\nb.jpg,x\nc.jpg,y\n'))
    assert table.labels.names == ("x", "y")  # type: ignore[attr-defined]


def test_space_is_a_delimiter_only_for_a_small_vocabulary() -> None:
    tags = [f"{a} {b}" for a in ("haze", "clear", "cloudy") for b in ("road", "water", "primary", "farm")]
    assert _delimiter([*tags, "haze", "clear road water"]) == " "
    assert _delimiter(tags) is None  # names of two words each, perhaps
    assert _delimiter(["traffic light", "fire hydrant", "dog"]) is None


def test_wide_columns_are_tri_state(make_csv: Make) -> None:
    table = _read(make_csv("file_name,cat,dog\na.jpg,1,0\nb.jpg,,1\nc.jpg,0,-1\n"))
    assert table.matrix.tolist() == [[PRESENT, ABSENT], [UNKNOWN, PRESENT], [ABSENT, UNKNOWN]]  # type: ignore[attr-defined]


def test_words_and_blanks_in_wide_columns(make_csv: Make) -> None:
    path = make_csv("File name,cat,dog\na.jpg,TRUE,no\nb.jpg,x,\nc.jpg,False,Yes\n")
    assert _read(path).matrix.tolist() == [[1, 0], [1, -1], [0, 1]]  # type: ignore[attr-defined]
    assert _read(path, blank="absent").matrix.tolist() == [[1, 0], [1, 0], [0, 1]]  # type: ignore[attr-defined]


def test_all_columns_to_ignore_are_named_at_once(make_csv: Make) -> None:
    path = make_csv("file_name,labels,id,width,height\na.jpg,x,1,2,3\n")
    with pytest.raises(DataError, match=r"'id' and 'width' and 'height'.*ignore_columns=\[id, width, height\]"):
        _read(path)
    assert _read(path, ignore_columns=("id", "width", "height")).labels.names == ("x",)  # type: ignore[attr-defined]


def test_unknown_labels_column(make_csv: Make) -> None:
    table = _read(make_csv("file_name,labels,unknown_labels\na.jpg,cat|dog,\nb.jpg,cat,dog\nc.jpg,,\n"))
    assert table.matrix.tolist() == [[1, 1], [1, UNKNOWN], [0, 0]]  # type: ignore[attr-defined]


def test_tab_separated_semicolons_and_a_byte_order_mark(make_csv: Make) -> None:
    path = make_csv("\ufefffile_name\tlabels\na.jpg\tx;y\nb.jpg\tx\nc.jpg\t\n")
    assert _read(path).labels.names == ("x", "y")  # type: ignore[attr-defined]


def test_duplicates_can_be_merged(make_csv: Make) -> None:
    path = make_csv("file_name,labels\na.jpg,cat\nb.jpg,dog\na.jpg,dog\nc.jpg,cat\n")
    table = _read(path, duplicates="merge")
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]  # type: ignore[attr-defined]
    assert table.matrix.tolist() == [[1, 1], [0, 1], [1, 0]]  # type: ignore[attr-defined]


def test_merging_keeps_every_kind_of_answer(make_csv: Make) -> None:
    semicolons = _read(make_csv("file_name,labels\na.jpg,x;y\na.jpg,z;x\nb.jpg,x\n"), duplicates="merge")
    assert semicolons.labels.names == ("x", "y", "z")  # type: ignore[attr-defined]
    assert semicolons.matrix.tolist() == [[1, 1, 1], [1, 0, 0]]  # type: ignore[attr-defined]
    wide = _read(make_csv("file_name,x,y,z\na.jpg,1,0,\na.jpg,0,,\nb.jpg,,,1\n"), duplicates="merge")
    assert wide.matrix.tolist() == [[1, 0, -1], [-1, -1, 1]]  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="row 3: 'a.jpg' is in another split than in row 2"):
        _read(make_csv("file_name,labels,split\na.jpg,x,train\na.jpg,y,val\n"), duplicates="merge")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("file_name,labels\n", "no rows"),
        ("shot,labels\na.jpg,x\n", "call it 'file_name'"),
        ("file_name,labels\na.jpg,x\ngone.jpg,x\n", "row 3: 'gone.jpg' is not there"),
        ("file_name,labels\na.jpg,x\nb.jpg,x\na.jpg,y\n", "row 4: 'a.jpg' already stands in row 2"),
        ("file_name,labels,weight\na.jpg,x,3\n", "row 1: column 'weight'"),
        ("file_name,labels\na.jpg,<script>alert(1)</script>\n", "row 2: label '<script>"),
        ("file_name,labels\na.jpg,x,y\n", "row 2: 3 cells where the header has 2"),
        ("file_name,labels,labels\na.jpg,x,y\n", "2 columns are called 'labels'"),
        ("file_name,labels\n../secret.jpg,x\n", "row 2.*leads out of the data folder"),
        ("file_name,labels\n/etc/passwd,x\n", "row 2.*leads out of the data folder"),
        ("file_name,labels\nC:\\\\x.jpg,x\n", "row 2.*leads out of the data folder"),
        ("file_name,labels,split\na.jpg,x,tarin\n", "row 2: split 'tarin'.*did you mean 'train'"),
        ("file_name,labels\na.jpg,dog\nb.jpg,Dog\n", "same but for case"),
        ("file_name,labels\na.jpg,\nb.jpg,\n", "nothing to learn"),
        ("file_name,cat,age\na.jpg,1,37\n", "row 2, column 'age': '37'"),
        ("file_name,labels\na.jpg,x|y\nb.jpg,x|y\nc.jpg,x;y\n", "row 4.*separates labels by ';'"),
        ("file_name,labels\n,x\n", "row 2: column 'file_name' is missing or blank"),
        ('file_name,labels\na.jpg,"x\nb.jpg,y\nc.jpg,z\n', "is a quote not closed"),
        ('file_name,labels\na.jpg,"x\nb.jpg,y"\nc.jpg,z\n', "row 3: a cell runs over several lines"),
        ("file_name,labels,unknown_labels\na.jpg,x,<script>\n", "row 2: label '<script>'"),
        ("file_name,labels,tags\na.jpg,x,y\n", "columns 'labels' and 'tags' mean the same"),
        ("file_name,labels\n" + "n" * 5000 + ".jpg,x\n", "row 2.*is no file name"),
        ("file_name,labels,unknown_labels\na.jpg,x|y,x\n", "row 2: label 'x' is given as present and as unknown"),
    ],
)
def test_every_error_names_the_place(make_csv: Make, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _read(make_csv(text))


def test_a_folder_in_place_of_an_image(make_csv: Make) -> None:
    path = make_csv("file_name,labels\na.jpg,x\nsub,x\n")
    (path.parent / "sub").mkdir()
    with pytest.raises(DataError, match="row 3: 'sub' is a folder"):
        _read(path)


def test_text_that_is_not_utf8(make_csv: Make) -> None:
    path = make_csv("file_name,labels\na.jpg,x\n")
    path.write_bytes(b"file_name,labels\na.jpg,x\nb.jpg,caf\xe9\n")
    with pytest.raises(DataError, match="row 3: not UTF-8"):
        _read(path)


def test_markup_can_be_allowed_on_purpose(make_csv: Make) -> None:
    path = make_csv("file_name,labels\na.jpg,<script>\nb.jpg,x\nc.jpg,\n")
    assert _read(path, allow_markup=True).labels.names == ("<script>", "x")  # type: ignore[attr-defined]
    assert _read(make_csv("file_name,labels\na.jpg,<5 years|x\nb.jpg,x\n")).labels.names == ("<5 years", "x")  # type: ignore[attr-defined]


def test_folders_without_or_with_several_label_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="without a label file"):
        _read(tmp_path)
    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "b.csv").write_text("x")
    with pytest.raises(DataError, match="several label files"):
        _read(tmp_path)
    with pytest.raises(DataError, match="does not exist.*did you mean"):
        _read(tmp_path / "a.cvs")


def test_scenes_are_a_table_with_noise_only_in_training() -> None:
    config = DataConfig(path="scenes")
    scenes = replace(config.scenes, train=30, val=10, unknown=0.3)
    table = read_table(replace(config, scenes=scenes))
    train, val = table.matrix[:30], table.matrix[30:]
    assert (train == UNKNOWN).any()
    assert not (val == UNKNOWN).any()
    assert table.source.read(str(table.keys[0])).size == (256, 256)
    assert len(table.labels) >= 16

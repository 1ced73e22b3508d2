"""Label files whose image names are not quite those of the files: as people have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.read import read_table
from manylabel.data.table import Table
from manylabel.error import DataError

Make = Callable[[str], Path]


def _read(path: Path, **changes: object) -> Table:
    return read_table(replace(DataConfig(path=str(path)), **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "names", [("a", "b", "c"), ("./a.jpg", "b.JPG", "c.jpeg"), ("a.jpg", "b", "C:\\photos\\c.jpg")]
)
def test_names_are_completed_and_said(make_csv: Make, names: tuple[str, ...]) -> None:
    table = _read(make_csv("file_name,labels\n" + "".join(f"{name},x\n" for name in names)))
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert any("names of images are not quite those of the files" in note for note in table.notes)


def test_names_without_suffix_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "train-jpg").mkdir()
    for i in range(3):
        Image.new("RGB", (20, 20)).save(tmp_path / "train-jpg" / f"train_{i}.jpg")
    path = tmp_path / "train.csv"
    path.write_text("image_name,tags\ntrain_0,haze primary\ntrain_1,clear primary\ntrain_2,clear water\n")
    table = _read(path, delimiter=" ")
    assert table.keys.tolist() == ["train_0.jpg", "train_1.jpg", "train_2.jpg"]
    assert table.labels.names == ("clear", "haze", "primary", "water")


def test_paths_of_another_machine_are_found_by_their_end(make_csv: Make, tmp_path: Path) -> None:
    path = make_csv("file_name,labels\n/content/drive/a.jpg,x\nhttps://shop.example/img/b.jpg,y\nc.jpg,\n")
    assert _read(path).keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    inside = make_csv(f"file_name,labels\n{tmp_path / 'data' / 'a.jpg'},x\nb.jpg,y\nc.jpg,\n")
    assert _read(inside).keys.tolist()[0] == "a.jpg"
    gone = make_csv("file_name,labels\nhttps://shop.example/z.jpg,x\nb.jpg,y\nc.jpg,\n")
    with pytest.raises(DataError, match=r"row 2: 'https://shop.example/z.jpg' is an address.*download"):
        _read(gone)
    outside = make_csv("file_name,labels\n/content/../a.jpg,x\nb.jpg,y\nc.jpg,\n")
    with pytest.raises(DataError, match="row 2.*leads out of the data folder"):
        _read(outside)


def test_two_names_of_one_image_are_a_duplicate(make_csv: Make) -> None:
    path = make_csv("file_name,labels\na,x\na.jpg,y\nc.jpg,\n")
    with pytest.raises(DataError, match="row 3: 'a.jpg' already stands in row 2"):
        _read(path)
    merged = _read(path, duplicates="merge")
    assert merged.keys.tolist() == ["a.jpg", "c.jpg"]
    assert merged.matrix.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("column", ["img", "filepath", "image_id", "id", "ImageID"])
def test_other_names_of_the_file_column(make_csv: Make, column: str) -> None:
    table = _read(make_csv(f"{column},labels\na.jpg,x\nb.jpg,y\nc.jpg,\n"))
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert any(f"the image files are in column '{column}'" in note for note in table.notes)
    wide = _read(make_csv(f"{column},x,y\na.jpg,1,0\nb.jpg,0,1\nc.jpg,0,0\n"))
    assert wide.labels.names == ("x", "y")


def test_the_number_that_pandas_writes_is_no_label(make_csv: Make) -> None:
    assert _read(make_csv(",file_name,labels\n0,a.jpg,x|y\n1,b.jpg,y\n2,c.jpg,\n")).labels.names == ("x", "y")
    assert _read(make_csv("Unnamed: 0,file_name,x\n0,a.jpg,1\n1,b.jpg,0\n")).labels.names == ("x",)


def test_lists_written_as_text(make_csv: Make) -> None:
    path = make_csv("file_name,labels\na.jpg,\"['x', 'y']\"\nb.jpg,\"['y']\"\nc.jpg,[]\n")
    table = _read(path)
    assert table.labels.names == ("x", "y")
    assert table.matrix.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert "labels are lists written as text" in table.notes
    with pytest.raises(DataError, match="row 3.*no list of names"):
        _read(make_csv("file_name,labels\na.jpg,\"['x']\"\nb.jpg,[y z]\nc.jpg,[]\n"))


def test_a_file_for_each_split(make_csv: Make) -> None:
    folder = make_csv("unused").parent
    (folder / "labels.csv").unlink()
    (folder / "train.csv").write_text("file_name,labels\na.jpg,x\nb.jpg,x|y\n")
    (folder / "val.csv").write_text("file_name,labels\nc.jpg,y\n")
    table = _read(folder)
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert table.split is not None
    assert table.split.tolist() == ["train", "train", "val"]
    assert table.labels.names == ("x", "y")
    assert "read as CSV or TSV (train.csv, val.csv)" in table.notes[0]
    (folder / "val.csv").write_text("file_name,x,y\nc.jpg,1,0\n")
    with pytest.raises(DataError, match="several label files"):
        _read(folder)
    with pytest.raises(DataError, match="have different columns"):
        _read(folder, format="csv")


def test_a_file_in_each_folder(tmp_path: Path) -> None:
    for split, names in (("train", "ab"), ("test", "ac")):
        (tmp_path / split / "img").mkdir(parents=True)
        for name in names:
            Image.new("RGB", (20, 20)).save(tmp_path / split / "img" / f"{name}.png")
        rows = "".join(f"{name}.png,x|{name}\n" for name in names)
        (tmp_path / split / "labels.csv").write_text(f"file_name,labels\n{rows}")
    table = _read(tmp_path)
    assert table.keys.tolist() == ["test/img/a.png", "test/img/c.png", "train/img/a.png", "train/img/b.png"]
    assert table.split is not None
    assert table.split.tolist() == ["test", "test", "train", "train"]


def test_a_photo_and_its_mask_are_not_guessed(make_csv: Make) -> None:
    path = make_csv("file_name,labels\na,x\nb.jpg,y\nc.jpg,\n")
    Image.new("L", (20, 20)).save(path.parent / "a.png")
    with pytest.raises(DataError, match=r"row 2: 'a' is not there, but a.jpg and a.png is"):
        _read(path)


def test_the_same_names_in_two_folders(tmp_path: Path) -> None:
    for folder in ("full", "small"):
        (tmp_path / folder).mkdir()
        Image.new("RGB", (20, 20)).save(tmp_path / folder / "a.jpg")
    (tmp_path / "labels.csv").write_text("file_name,labels\na.jpg,x\n")
    with pytest.raises(DataError, match=r"'a.jpg' and so on are in full/ and in small/.*data.images="):
        _read(tmp_path)
    assert len(_read(tmp_path, images=str(tmp_path / "small"))) == 1


def test_an_image_of_another_split_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    Image.new("RGB", (20, 20)).save(tmp_path / "test" / "a.jpg")
    (tmp_path / "labels.csv").write_text("file_name,labels\n/home/bob/train/a.jpg,x\n")
    with pytest.raises(DataError, match="row 2: '/home/bob/train/a.jpg' leads out of the data folder"):
        _read(tmp_path)


def test_two_paths_that_end_alike_are_not_one_image(make_csv: Make) -> None:
    path = make_csv("file_name,labels\n/x/a.jpg,x\n/y/a.jpg,y\nc.jpg,\n")
    with pytest.raises(DataError, match="row 3: '/y/a.jpg' and '/x/a.jpg' both end like 'a.jpg'"):
        _read(path, duplicates="merge")


def test_spellings_of_one_path_are_one_image(make_csv: Make) -> None:
    path = make_csv("file_name,labels,split\na.jpg,x,train\n.//a.jpg,x,val\nc.jpg,,val\n")
    with pytest.raises(DataError, match="row 3: 'a.jpg' is in another split than in row 2"):
        _read(path)


def test_images_folder_does_not_open_the_way_out(make_csv: Make, tmp_path: Path) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "secret.jpg")
    for name in ("../secret.jpg", str(tmp_path / "secret.jpg")):
        path = make_csv(f"file_name,labels\n{name},x\nb.jpg,y\n")
        with pytest.raises(DataError, match="row 2.*leads out of the data folder"):
            _read(path, images=str(tmp_path / "data"))


def test_what_spreadsheets_add_is_no_data(make_csv: Make) -> None:
    assert len(_read(make_csv("sep=;\r\nfile_name;labels;;\r\na.jpg;x|y;;\r\nb.jpg;y;;\r\n"))) == 2
    with pytest.raises(DataError, match="row 3: 1 cells where the header has 2; fill in the missing ones"):
        _read(make_csv("file_name,labels\na.jpg,x\nb.jpg\n"))


def test_minus_one_without_any_zero_is_absent(make_csv: Make) -> None:
    table = _read(make_csv("image_id,Smiling,Young\na.jpg,1,-1\nb.jpg,-1,1\nc.jpg,-1,-1\n"))
    assert table.matrix.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert any("-1 is taken for absent" in note for note in table.notes)
    assert _read(make_csv("image_id,x\na.jpg,1\nb.jpg,-1\nc.jpg,0\n")).matrix.tolist() == [[1], [-1], [0]]


def test_a_label_called_group_is_not_lost(make_csv: Make) -> None:
    with pytest.raises(DataError, match="column 'group' would be the group of the images.*rename the column"):
        _read(make_csv("file_name,cat,group\na.jpg,1,0\nb.jpg,0,1\nc.jpg,0,0\n"))
    table = _read(make_csv("file_name,cat,Patient ID\na.jpg,1,p1\nb.jpg,0,p2\nc.jpg,0,p1\n"))
    assert table.groups is not None
    assert table.groups.tolist() == ["p1", "p2", "p1"]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (("bird", "cat|dog", "bird;cat"), "row 4: 'bird;cat' separates labels by ';'"),
        (("bird|cat;dog", "cat", "dog|bird"), "row 2: 'cat;dog' separates labels by ';'"),
    ],
)
def test_delimiters_mixed_in_any_way(make_csv: Make, cells: tuple[str, ...], message: str) -> None:
    rows = "".join(f"{name}.jpg,{cell}\n" for name, cell in zip("abc", cells, strict=True))
    with pytest.raises(DataError, match=message):
        _read(make_csv(f"file_name,labels\n{rows}"))


def test_doubtful_labels_are_said(make_csv: Make) -> None:
    table = _read(make_csv("file_name,labels\na.jpg,cat/dog\nb.jpg,cat|dog\nc.jpg,nan\n"))
    assert any("label 'cat/dog' looks like several" in note for note in table.notes)
    assert any("there is a label 'nan'" in note for note in table.notes)


def test_an_archive_in_a_folder_of_its_own(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "unzipped").mkdir()
    photos.rename(tmp_path / "unzipped" / "photos")
    (tmp_path / "unzipped" / "__MACOSX").mkdir()
    assert len(_read(tmp_path / "unzipped")) == 48


@pytest.mark.parametrize(("name", "advice"), [("a.zip", "unpack it first"), ("a.xlsx", "save the sheet as CSV")])
def test_files_that_need_something_first(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_bytes(b"PK")
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(DataError, match=advice):
            _read(path)

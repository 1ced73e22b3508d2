from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.read import find_format, read_table
from manylabel.data.read.folders import FORMAT
from manylabel.data.read.same_content import TAIL, same_content
from manylabel.data.table import Table
from manylabel.error import DataError


def _photo(path: Path, shade: int = 0) -> Path:
    """A photo whose bytes differ from those of any other shade."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8 + shade // 50, 8), (shade, 255 - shade, shade // 2)).save(path, quality=95)
    return path


def _photos(root: Path, *names: str) -> Path:
    for i, name in enumerate(names):
        _photo(root / name, 5 * i)
    return root


def _read(folder: Path, **changes: object) -> Table:
    return read_table(replace(DataConfig(path=str(folder)), **changes))  # type: ignore[arg-type]


def _labels(table: Table) -> dict[str, list[str]]:
    return {
        key: [name for name, value in zip(table.labels, row, strict=True) if value == 1]
        for key, row in zip(table.keys.tolist(), table.matrix.tolist(), strict=True)
    }


def test_a_folder_per_label(tmp_path: Path) -> None:
    root = _photos(tmp_path / "pets", "dog/1.jpg", "cat/2.jpg", "cat/deeper/still/3.jpg", "none/4.png")
    _, kind, reason = find_format(DataConfig(path=str(root)))
    assert (kind.name, reason) == ("folders", "one folder per label: cat, dog, none")
    table = _read(root)
    assert table.name == "pets"
    assert table.labels.names == ("cat", "dog", "none")
    assert _labels(table) == {
        "cat/2.jpg": ["cat"],
        "cat/deeper/still/3.jpg": ["cat"],
        "dog/1.jpg": ["dog"],
        "none/4.png": ["none"],
    }
    assert set(table.matrix.ravel().tolist()) == {0, 1}
    assert table.split is None
    assert "one label per image" in table.notes
    assert _labels(_read(root, format="folders")) == _labels(table)


@pytest.mark.parametrize(
    "names", [("train", "val", "test"), ("Training", "valid", "test"), ("train", "validation", "test")]
)
def test_splits_as_imagenet_has_them(tmp_path: Path, names: tuple[str, str, str]) -> None:
    train, val, test = names
    root = _photos(tmp_path / "in", f"{train}/dog/1.jpg", f"{train}/cat/2.jpg", f"{val}/dog/3.jpg", f"{test}/4.jpg")
    _, kind, reason = find_format(DataConfig(path=str(root)))
    assert kind.name == "folders"
    assert f"{train}/<label>/" in reason
    table = _read(root)
    assert table.labels.names == ("cat", "dog")
    assert _labels(table) == {f"{train}/cat/2.jpg": ["cat"], f"{train}/dog/1.jpg": ["dog"], f"{val}/dog/3.jpg": ["dog"]}
    assert table.split is not None
    assert table.split.tolist() == ["train", "train", "val"]
    assert "1 images outside the folders of labels are left out" in table.notes


def test_images_outside_and_what_archives_and_tools_leave_behind(tmp_path: Path) -> None:
    root = _photos(
        tmp_path / "d", "cover.jpg", "a/1.jpg", "b/2.jpg", ".cache/3.jpg", "__MACOSX/a/4.jpg", "@eaDir/5.jpg"
    )
    (root / "a" / "readme.txt").write_text("hello")
    table = _read(root)
    assert table.keys.tolist() == ["a/1.jpg", "b/2.jpg"]
    assert table.labels.names == ("a", "b")
    assert "1 images outside the folders of labels are left out" in table.notes
    assert not any("hold no image" in note for note in table.notes)


def test_a_label_may_be_called_train(tmp_path: Path) -> None:
    table = _read(_photos(tmp_path / "d", "train/1.jpg", "bus/2.jpg", "car/3.jpg"))
    assert table.labels.names == ("bus", "car", "train")
    assert table.split is None


def test_a_folder_beside_the_splits_is_left_out(tmp_path: Path) -> None:
    table = _read(_photos(tmp_path / "d", "train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg", "extra/4.jpg"))
    assert table.labels.names == ("a", "b")
    assert "1 images outside the folders of labels are left out" in table.notes


def test_split_or_label_is_asked_when_unclear(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "train/a/1.jpg", "train/b/2.jpg", "bus/3.jpg")
    with pytest.raises(DataError, match=r"d: is train/ a split or a label\?.*move these away"):
        _read(root)


# --- copies -----------------------------------------------------------------------------------------------------


def test_copies_in_several_folders_are_one_image_with_all_labels(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "cat/1.jpg", "cat/2.jpg", "dog/3.jpg", "sofa/4.jpg")
    shutil.copy(root / "cat" / "1.jpg", root / "dog" / "renamed.jpg")
    os.symlink(root / "cat" / "1.jpg", root / "sofa" / "linked.jpg")
    table = _read(root)
    assert _labels(table) == {
        "cat/1.jpg": ["cat", "dog", "sofa"],
        "cat/2.jpg": ["cat"],
        "dog/3.jpg": ["dog"],
        "sofa/4.jpg": ["sofa"],
    }
    assert "1 images stand in several folders; merged by content" in table.notes
    assert "one label per image" not in table.notes


def test_copies_below_one_label_stay_two_images(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "cat/1.jpg", "dog/2.jpg")
    shutil.copy(root / "cat" / "1.jpg", root / "cat" / "again.jpg")
    assert _read(root).keys.tolist() == ["cat/1.jpg", "cat/again.jpg", "dog/2.jpg"]


def test_copies_are_merged_within_a_split(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg")
    shutil.copy(root / "train/a/1.jpg", root / "train/b/1.jpg")
    assert _labels(_read(root))["train/a/1.jpg"] == ["a", "b"]


def test_copies_in_two_splits_are_an_error_that_names_both(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg", "valid/b/4.jpg")
    shutil.copy(root / "train/b/2.jpg", root / "val/a/copy.jpg")
    with pytest.raises(DataError, match=r"1 images are in two splits[\s\S]*train/b/2.jpg and val/a/copy.jpg"):
        _read(root)
    (root / "val/a/copy.jpg").unlink()
    shutil.copy(root / "val/a/3.jpg", root / "valid/b/3.jpg")  # two spellings of one split
    assert _labels(_read(root))["val/a/3.jpg"] == ["a", "b"]


def test_an_error_does_not_list_all_copies(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", *(f"train/a/{i}.jpg" for i in range(12)), "val/b/x.jpg")
    for i in range(12):
        shutil.copy(root / f"train/a/{i}.jpg", root / f"val/b/{i}.jpg")
    with pytest.raises(DataError, match=r"12 images are in two splits[\s\S]*and 2 more") as caught:
        _read(root)
    assert str(caught.value).count(" and val/b/") == 10


def test_empty_files_are_not_copies_of_each_other(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg")
    for name in ("train/a/0.jpg", "train/b/0.jpg", "val/a/0.jpg"):
        (root / name).write_bytes(b"")
    assert len(_read(root)) == 6


def test_files_that_differ_only_before_their_end_are_different(tmp_path: Path) -> None:
    for name, start in (("a", b"1"), ("b", b"2"), ("c", b"1"), ("d", b"")):
        (tmp_path / name).write_bytes(start + b"same" * TAIL)
    assert same_content(tmp_path, ["a", "b", "c", "d", "gone"]) == [[0, 2]]


# --- ImageNet's ids ---------------------------------------------------------------------------------------------

IDS = ("train/n01440764/1.JPEG", "train/n02012849/2.JPEG", "train/n03126707/3.JPEG")


@pytest.mark.parametrize("place", [".", ".."])
@pytest.mark.parametrize("file", ["LOC_synset_mapping.txt", "synset_words.txt", "imagenet_class_index.json"])
def test_ids_get_their_names(tmp_path: Path, place: str, file: str) -> None:
    root = _photos(tmp_path / "in", *IDS)
    text = "n01440764 tench, Tinca tinca\nn02012849 crane\nn03126707 crane\n\n"
    if file.endswith(".json"):
        entries = [["n01440764", "tench"], ["n02012849", "crane"], ["n03126707", "crane"]]
        text = json.dumps({str(i): entry for i, entry in enumerate(entries)})
    (root / place / file).write_text(text)
    table = _read(root)
    assert table.labels.names == ("crane (n02012849)", "crane (n03126707)", "tench")
    assert _labels(table)[IDS[0]] == ["tench"]
    assert f"names of the labels are from {file}" in table.notes
    assert "1 names belong to several ids and carry them in brackets: crane" in table.notes


def test_ids_stay_without_a_file_and_where_it_does_not_know_them(tmp_path: Path) -> None:
    root = _photos(tmp_path / "in", *IDS)
    assert _read(root).labels.names == ("n01440764", "n02012849", "n03126707")
    (root / "synset_words.txt").write_text("n01440764 tench\nn02012849 crane\n")
    table = _read(root)
    assert table.labels.names == ("crane", "n03126707", "tench")
    assert "1 folders are not in synset_words.txt and keep their ids: n03126707" in table.notes


def test_underscores_of_the_class_index_are_spaces(tmp_path: Path) -> None:
    root = _photos(tmp_path / "in", "n01484850/1.jpg", "other/2.jpg")
    (root / "imagenet_class_index.json").write_text('{"2": ["n01484850", "great_white_shark"]}')
    assert _read(root).labels.names == ("great white shark", "other")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("synset_words.txt", "n01440764 tench\ntench\n", r"synset_words.txt, row 2: expected an id and names"),
        ("synset_words.txt", "n01440764\n", r"synset_words.txt, row 1: expected an id and names"),
        (
            "imagenet_class_index.json",
            '{"0": ["n01440764"]}',
            r"imagenet_class_index.json, class '0': expected entries",
        ),
        ("imagenet_class_index.json", "[1]", r"imagenet_class_index.json, class '': expected entries"),
        ("imagenet_class_index.json", '{"0": ', r"imagenet_class_index.json, row 1: cut off"),
    ],
)
def test_bad_files_of_names(tmp_path: Path, file: str, text: str, message: str) -> None:
    root = _photos(tmp_path / "in", *IDS)
    (root / file).write_text(text)
    with pytest.raises(DataError, match=message):
        _read(root)


# --- what is not this format, and what cannot be read -------------------------------------------------------------


@pytest.mark.parametrize("name", ["labels.csv", "a/labels.tsv", "b/meta.jsonl", "a/1.xml", "x.parquet", "boxes/i.json"])
def test_a_label_file_rules_it_out(tmp_path: Path, name: str) -> None:
    root = _photos(tmp_path / "d", "a/1.jpg", "b/2.jpg")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("x")
    assert FORMAT.sniff(root) == ""


def test_a_label_file_in_a_label_folder_of_a_split_rules_it_out(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "train/a/1.jpg", "train/b/2.jpg")
    assert FORMAT.sniff(root) == "folders train/<label>/"
    (root / "train" / "b" / "boxes.json").write_text("{}")
    assert FORMAT.sniff(root) == ""


@pytest.mark.parametrize(
    "names",
    [
        ("images/1.jpg", "images/2.jpg"),
        ("images/1.jpg", "masks/1.png"),
        ("1.jpg", "2.jpg"),
        ("a/1.jpg",),
        ("train/1.jpg", "val/2.jpg", "test/3.jpg"),
        ("train2017/1.jpg", "val2017/2.jpg"),
        ("train/only/1.jpg",),
    ],
)
def test_pictures_without_labels_are_not_claimed(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert FORMAT.sniff(_photos(tmp_path / "d", *names)) == ""


def test_neither_files_nor_nothing_are_claimed(tmp_path: Path) -> None:
    assert FORMAT.sniff(_photo(tmp_path / "x.jpg")) == ""
    assert FORMAT.sniff(tmp_path / "nowhere") == ""
    (tmp_path / "empty").mkdir()
    assert FORMAT.sniff(tmp_path / "empty") == ""


def test_one_label_can_be_asked_for(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "a/1.jpg")
    assert _read(root, format="folders").labels.names == ("a",)


def test_nothing_to_read(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "train/1.jpg", "val/2.jpg")
    with pytest.raises(DataError, match=r"d has no folder per label with images in it; expected <label>/<image>"):
        _read(root, format="folders")
    with pytest.raises(DataError, match=r"1.jpg is a file; name the folder"):
        _read(root / "train" / "1.jpg", format="folders")


def test_spellings_that_differ_in_case_only(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "train/Dog/1.jpg", "train/cat/2.jpg", "val/dog/3.jpg")
    with pytest.raises(DataError, match=r"d: labels 'Dog' and 'dog' are the same but for case"):
        _read(root)


def test_markup_in_a_folder_name(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "<b>/1.jpg", "cat/2.jpg")
    with pytest.raises(DataError, match=r"label '<b>' looks like markup"):
        _read(root)


def test_links_that_lead_back_end_there(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "a/1.jpg", "b/2.jpg")
    os.symlink(root, root / "a" / "loop")
    os.symlink(root / "b" / "self.jpg", root / "b" / "self.jpg")
    os.symlink(root / "self", root / "self")
    table = _read(root)
    assert table.keys.tolist() == ["a/1.jpg", "b/2.jpg"]


# --- folders that may have been meant as labels -------------------------------------------------------------------


def test_folders_below_the_labels_are_named(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "animals/cat/1.jpg", "animals/dog/2.jpg", "plants/tree/3.jpg")
    table = _read(root)
    assert table.labels.names == ("animals", "plants")
    assert "folders below the labels are not labels of their own: cat, dog, tree" in table.notes
    _photos(root, *(f"plants/kind{i}/{i}.png" for i in range(4)))
    assert any(note.endswith("cat, dog, kind0, kind1, kind2, …") for note in _read(root).notes)
    split = _photos(tmp_path / "s", "train/a/x/1.jpg", "train/b/y/2.jpg", "val/a/3.jpg")
    assert "folders below the labels are not labels of their own: x, y" in _read(split).notes


def test_one_folder_below_a_label_is_not_worth_a_note(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "cat/images/1.jpg", "dog/images/2.jpg")
    assert not any("below the labels" in note for note in _read(root).notes)


def test_folders_without_an_image_are_named(tmp_path: Path) -> None:
    root = _photos(tmp_path / "d", "a/1.jpg", "b/2.jpg")
    for name in ("c", "d", ".git", "@eaDir", "__MACOSX"):
        (root / name / "deeper").mkdir(parents=True)
    table = _read(root)
    assert table.labels.names == ("a", "b")
    assert "2 folders hold no image: c, d" in table.notes
    split = _photos(tmp_path / "s", "train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg")
    (split / "val" / "b").mkdir()
    (split / "docs").mkdir()
    assert "1 folders hold no image: val/b" in _read(split).notes

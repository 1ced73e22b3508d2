from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.builder import TableBuilder
from manylabel.data.read import find_format, nus_wide_zsl, read_table
from manylabel.data.read.nus_wide import FORMAT, seen_unseen
from manylabel.data.table import Table
from manylabel.error import DataError

CONCEPTS = ("airport", "lake", "sky")
TRAIN = ("actor\\0001_11.jpg", "actor\\0002_22.jpg", "zebra\\0001_33.jpg")
TEST = ("zebra\\0002_44.jpg",)
LABELS = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]])  # rows: TRAIN + TEST
TAGS = ("nature", "sky", "blue", "lake", "water")
TAGGED = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1], [1, 1, 0, 0, 0]])
ORDER = [3, 0, 1, 2]  # Imagelist.txt has its own order


def _lines(values: list[object] | tuple[object, ...]) -> str:
    return "".join(f"{value}\n" for value in values)


def _matrix_text(matrix: np.ndarray) -> str:
    return "".join("".join(f"{cell}\t" for cell in row) + "\n" for row in matrix)  # ends in a tab, as the official does


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With TrainTestLabels only."""
    root = tmp_path / "nus"
    for name in TRAIN + TEST:
        path = root / "Flickr" / name.replace("\\", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 9), (200, 30, 90)).save(path)
    for place in ("ConceptsList", "ImageList", "Groundtruth/TrainTestLabels", "NUS_WID_Tags"):
        (root / place).mkdir(parents=True)
    (root / "ConceptsList" / "Concepts81.txt").write_text("airport\nlake \nsky\n")
    (root / "ImageList" / "TrainImagelist.txt").write_text(_lines(TRAIN))
    (root / "ImageList" / "TestImagelist.txt").write_text(_lines(TEST) + "\n")
    for i, concept in enumerate(CONCEPTS):
        for part, rows in (("Train", LABELS[:3]), ("Test", LABELS[3:])):
            path = root / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_{part}.txt"
            path.write_text(_lines(rows[:, i].tolist()))
    (root / "NUS_WID_Tags" / "TagList1k.txt").write_text(_lines(TAGS))
    (root / "NUS_WID_Tags" / "Train_Tags1k.dat").write_text(_matrix_text(TAGGED[:3]))
    (root / "NUS_WID_Tags" / "Test_Tags1k.dat").write_text(_matrix_text(TAGGED[3:]))
    return root


@pytest.fixture
def all_labels(folder: Path) -> Path:
    """With AllLabels beside them."""
    (folder / "ImageList" / "Imagelist.txt").write_text(_lines([(TRAIN + TEST)[i] for i in ORDER]))
    (folder / "Groundtruth" / "AllLabels").mkdir()
    for i, concept in enumerate(CONCEPTS):
        path = folder / "Groundtruth" / "AllLabels" / f"Labels_{concept}.txt"
        path.write_text(_lines(LABELS[ORDER, i].tolist()))
    return folder


def _read(folder: Path, **changes: object) -> Table:
    return read_table(replace(DataConfig(path=str(folder)), **changes))  # type: ignore[arg-type]


def _read_zsl(folder: Path, **changes: object) -> Table:
    config = replace(DataConfig(path=str(folder)), **changes)  # type: ignore[arg-type]
    return TableBuilder(nus_wide_zsl.FORMAT.open(folder, config), config).table()


def _labels(table: Table) -> dict[str, tuple[str, list[int]]]:
    """file name → (split, row of the matrix)"""
    assert table.split is not None
    return dict(zip(table.keys.tolist(), zip(table.split.tolist(), table.matrix.tolist(), strict=True), strict=True))


EXPECTED = {
    "Flickr/actor/0001_11.jpg": ("train", [1, 0, 0]),
    "Flickr/actor/0002_22.jpg": ("train", [0, 1, 1]),
    "Flickr/zebra/0001_33.jpg": ("train", [0, 0, 0]),
    "Flickr/zebra/0002_44.jpg": ("test", [0, 0, 1]),
}


def test_train_and_test_labels(folder: Path) -> None:
    _, kind, reason = find_format(DataConfig(path=str(folder)))
    assert (kind.name, reason) == ("nus-wide", "Concepts81.txt and Labels_*.txt")
    table = _read(folder)
    assert table.labels.names == CONCEPTS
    assert _labels(table) == EXPECTED
    assert _labels(_read(folder, format="nus-wide")) == EXPECTED


def test_all_labels_are_preferred_and_the_lists_tell_the_split(all_labels: Path) -> None:
    broken = all_labels / "Groundtruth" / "TrainTestLabels" / "Labels_lake_Train.txt"
    broken.write_text("0\n-1130179\n0\n")  # as in the official file
    table = _read(all_labels)
    assert table.keys[0] == "Flickr/zebra/0002_44.jpg"
    assert _labels(table) == EXPECTED


def test_all_labels_without_lists_of_train_and_test(all_labels: Path) -> None:
    for name in ("TrainImagelist.txt", "TestImagelist.txt"):
        (all_labels / "ImageList" / name).unlink()
    assert _read(all_labels).split is None


def test_images_in_one_flat_folder_elsewhere_and_the_list_of_concepts_at_the_top(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "ConceptsList" / "Concepts81.txt", folder / "Concepts81.txt")
    flat = tmp_path / "flat"
    flat.mkdir()
    (folder / "Flickr" / "zebra" / "0001_33.jpg").rename(folder / "Flickr" / "zebra" / "0003_33.jpg")
    list_path = folder / "ImageList" / "TrainImagelist.txt"
    list_path.write_text(list_path.read_text().replace("0001_33", "0003_33"))
    for path in (folder / "Flickr").glob("*/*.jpg"):
        path.rename(flat / path.name)
    table = _read(folder, images=str(flat))
    assert sorted(table.keys.tolist()) == ["0001_11.jpg", "0002_22.jpg", "0002_44.jpg", "0003_33.jpg"]


def test_images_that_flickr_lost(folder: Path) -> None:
    (folder / "Flickr" / "actor" / "0002_22.jpg").unlink()
    with pytest.raises(
        DataError, match=r"TrainImagelist.txt, row 2: 'actor/0002_22.jpg' is not there[\s\S]*missing=drop"
    ):
        _read(folder)
    table = _read(folder, missing="drop")
    assert len(table) == 3
    assert any(note.startswith("1 rows were left out") for note in table.notes)


def test_the_place_of_a_missing_test_image_is_in_the_test_list(folder: Path) -> None:
    (folder / "Flickr" / "zebra" / "0002_44.jpg").unlink()
    with pytest.raises(DataError, match=r"TestImagelist.txt, row 1: "):
        _read(folder)


def test_a_namesake_in_another_folder_is_another_image(folder: Path) -> None:
    path = folder / "ImageList" / "TrainImagelist.txt"
    path.write_text(_lines([TRAIN[0], "zebra\\0001_11.jpg", TRAIN[2]]))
    with pytest.raises(DataError, match=r"TrainImagelist.txt, row 2: 'zebra/0001_11.jpg' is not there"):
        _read(folder)


def test_a_line_that_is_neither_0_nor_1(folder: Path) -> None:
    path = folder / "Groundtruth" / "TrainTestLabels" / "Labels_lake_Train.txt"
    path.write_text("0\n-1130179\n0\n")
    with pytest.raises(DataError, match=r"Labels_lake_Train.txt, row 2: '-1130179' is neither 0 nor 1.*AllLabels"):
        _read(folder)


def test_two_cells_in_a_line_are_refused(folder: Path) -> None:
    path = folder / "Groundtruth" / "TrainTestLabels" / "Labels_lake_Train.txt"
    path.write_text("0\n01\n\n0\n")
    with pytest.raises(DataError, match=r"Labels_lake_Train.txt, row 2: '01'"):
        _read(folder)


def test_lines_that_do_not_belong_together(folder: Path) -> None:
    path = folder / "Groundtruth" / "TrainTestLabels" / "Labels_sky_Test.txt"
    path.write_text("0\n1\n")
    with pytest.raises(DataError, match=r"Labels_sky_Test.txt has 2 lines, .*TestImagelist.txt has 1; "):
        _read(folder)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("Groundtruth/TrainTestLabels/Labels_sky_Train.txt", "Labels_sky_Train.txt"),
        ("ImageList/TestImagelist.txt", "TestImagelist.txt"),
    ],
)
def test_missing_files_are_named(folder: Path, name: str, missing: str) -> None:
    (folder / name).unlink()
    with pytest.raises(DataError, match=rf"nus: there is no {missing}"):
        _read(folder)


def test_empty_lists(folder: Path) -> None:
    (folder / "ImageList" / "TrainImagelist.txt").write_text("\n\n")
    with pytest.raises(DataError, match=r"TrainImagelist.txt names no image"):
        _read(folder)
    (folder / "ConceptsList" / "Concepts81.txt").write_text("")
    with pytest.raises(DataError, match=r"Concepts81.txt names no label"):
        _read(folder)


def test_an_image_of_both_splits(all_labels: Path) -> None:
    (all_labels / "ImageList" / "TestImagelist.txt").write_text(_lines([*TEST, TRAIN[0]]))
    with pytest.raises(DataError, match=r"TestImagelist.txt, row 2: 'actor/0001_11.jpg' also stands in TrainImagelist"):
        _read(all_labels)


def test_names_that_lead_out_and_repeated_names(folder: Path) -> None:
    path = folder / "ImageList" / "TrainImagelist.txt"
    path.write_text(_lines(["..\\..\\secret.jpg", *TRAIN[1:]]))
    with pytest.raises(DataError, match=r"TrainImagelist.txt, row 1: .*leads out of the data folder"):
        _read(folder)
    path.write_text(_lines([TRAIN[0], TRAIN[0], TRAIN[2]]))
    with pytest.raises(DataError, match=r"TrainImagelist.txt, row 2: .* already stands in row 1"):
        _read(folder)


def test_text_that_is_not_utf_8(folder: Path) -> None:
    (folder / "ImageList" / "TrainImagelist.txt").write_bytes(b"actor\\0001_11.jpg\n\xff\xfe.jpg\nx\n")
    with pytest.raises(DataError, match=r"TrainImagelist.txt, row 2: not UTF-8"):
        _read(folder)


def test_links_that_lead_back_or_to_themselves(folder: Path) -> None:
    (folder / "Flickr" / "loop").symlink_to(folder)
    (folder / "Groundtruth" / "imagelist").symlink_to(folder / "Groundtruth" / "imagelist")
    (folder / "Groundtruth" / "NUS_WID_Tags").symlink_to(folder)
    assert len(_read(folder)) == 4


def test_others_are_not_claimed(folder: Path, tmp_path: Path) -> None:
    assert FORMAT.sniff(folder / "ConceptsList" / "Concepts81.txt") == ""
    assert FORMAT.sniff(folder / "Flickr") == ""
    assert FORMAT.sniff(tmp_path / "nowhere") == ""
    shutil.rmtree(folder / "Groundtruth")
    assert FORMAT.sniff(folder) == ""


# --- seen and unseen labels ---------------------------------------------------------------------------------------


def test_a_tag_that_is_a_concept_is_unseen(folder: Path) -> None:
    assert seen_unseen(folder) == (("nature", "blue", "water"), CONCEPTS)


ZSL = {
    "Flickr/actor/0001_11.jpg": ("train", [1, 1, 0, -1, -1, -1]),
    "Flickr/actor/0002_22.jpg": ("train", [0, 0, 0, -1, -1, -1]),
    "Flickr/zebra/0001_33.jpg": ("train", [0, 0, 1, -1, -1, -1]),
    "Flickr/zebra/0002_44.jpg": ("test", [1, 0, 0, 0, 0, 1]),
}


def test_training_images_tell_the_seen_labels_and_test_images_both(folder: Path) -> None:
    assert nus_wide_zsl.FORMAT.name == "nus-wide-925"
    assert nus_wide_zsl.FORMAT.sniff(folder) == ""
    table = _read_zsl(folder)
    assert table.labels.names == ("nature", "blue", "water", *CONCEPTS)
    assert _labels(table) == ZSL
    assert any("3 seen labels" in note and "3 unseen" in note for note in table.notes)


def test_tags_and_labels_may_come_in_different_orders(all_labels: Path) -> None:
    assert _labels(_read_zsl(all_labels)) == ZSL
    tags = all_labels / "NUS_WID_Tags"
    (tags / "Train_Tags1k.dat").unlink()
    (tags / "Test_Tags1k.dat").unlink()
    (tags / "AllTags1k.txt").write_text(_matrix_text(TAGGED[ORDER]) + "\n")
    table = _read_zsl(all_labels)
    assert table.keys[0] == "Flickr/zebra/0002_44.jpg"
    assert _labels(table) == ZSL


@pytest.mark.parametrize("count", [2, 4])
def test_tags_that_do_not_belong_to_the_list(folder: Path, count: int) -> None:
    (folder / "NUS_WID_Tags" / "Train_Tags1k.dat").write_text(_matrix_text(np.zeros((count, 5), int)))
    with pytest.raises(DataError, match=rf"Train_Tags1k.dat has {count} lines, .*TrainImagelist.txt has 3; "):
        _read_zsl(folder)


@pytest.mark.parametrize("line", ["1\t0\t0\t0\n", "1\t0\t0\t0\t7\n", "a b c d e\n", "\n"])
def test_bad_lines_of_tags(folder: Path, line: str) -> None:
    text = _matrix_text(TAGGED[:1]) + line + _matrix_text(TAGGED[2:3])
    (folder / "NUS_WID_Tags" / "Train_Tags1k.dat").write_text(text)
    with pytest.raises(DataError, match=r"Train_Tags1k.dat, row 2: expected 5 cells of 0 or 1"):
        _read_zsl(folder)


def test_zero_shot_needs_tags_and_a_split(all_labels: Path) -> None:
    tags = all_labels / "NUS_WID_Tags"
    (tags / "Train_Tags1k.dat").unlink()
    with pytest.raises(DataError, match=r"there is no Train_Tags1k.dat"):
        _read_zsl(all_labels)
    (tags / "Test_Tags1k.dat").unlink()
    (tags / "AllTags1k.txt").write_text(_matrix_text(TAGGED[ORDER]))
    (all_labels / "ImageList" / "TestImagelist.txt").unlink()
    with pytest.raises(DataError, match=r"Imagelist.txt, row 1: 'zebra/0002_44.jpg' is in neither TrainImagelist"):
        _read_zsl(all_labels)

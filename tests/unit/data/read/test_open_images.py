from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.read import find_format, read_table
from manylabel.data.read.distinct_names import distinct_names
from manylabel.data.read.open_images import FORMAT
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError

CLASSES = "LabelName,DisplayName\n/m/0cat,Cat\n/m/0dog,Dog\n/m/0frog,Frog\n/m/0bird,Bird\n"
HEADER = "ImageID,Source,LabelName,Confidence\n"
TRAIN = HEADER + (
    "aa00,verification,/m/0cat,1\n"
    "aa00,crowdsource-verification,/m/0dog,0\n"
    "gone,verification,/m/0unheard,1\n"  # not on disk: nobody asks what the label is
    "aa01,verification,/m/0dog,1\n"
)
VALIDATION = HEADER + "bb00,verification,/m/0frog,1\nbb00,verification,/m/0cat,0\n"
BOX_HEADER = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf\n"


def _photo(path: Path, size: tuple[int, int] = (40, 20)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (90, 120, 60)).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "oi"
    for name in ("train/aa00.jpg", "train/aa01.jpg", "validation/bb00.jpg"):
        _photo(root / name)
    (root / "oidv6-class-descriptions.csv").write_text(CLASSES)
    (root / "oidv6-train-annotations-human-imagelabels.csv").write_text(TRAIN)
    (root / "validation-annotations-human-imagelabels.csv").write_text(VALIDATION)
    return root


def _read(folder: Path, **changes: object) -> Table:
    return read_table(replace(DataConfig(path=str(folder)), **changes))  # type: ignore[arg-type]


def _train(folder: Path, rows: str) -> None:
    (folder / "oidv6-train-annotations-human-imagelabels.csv").write_text(HEADER + rows)


def test_it_is_detected_and_verified_negatives_are_the_only_negatives(folder: Path) -> None:
    _, kind, reason = find_format(DataConfig(path=str(folder)))
    assert (kind.name, reason) == (
        "open-images",
        "oidv6-class-descriptions.csv and oidv6-train-annotations-human-imagelabels.csv",
    )
    table = _read(folder)
    assert table.keys.tolist() == ["train/aa00.jpg", "train/aa01.jpg", "validation/bb00.jpg"]
    assert table.labels.names == ("Cat", "Dog", "Frog")
    assert table.matrix.tolist() == [[1, 0, -1], [-1, 1, -1], [0, -1, 1]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "train", "val"]
    assert np.array_equal(_read(folder, format="open-images").matrix, table.matrix)


def test_a_single_label_file_can_be_named(folder: Path) -> None:
    table = _read(folder / "validation-annotations-human-imagelabels.csv")
    assert table.keys.tolist() == ["validation/bb00.jpg"]
    assert table.labels.names == ("Cat", "Frog")


def test_files_may_lie_in_a_folder_and_descriptions_have_no_header(folder: Path) -> None:
    inside = folder / "val"
    inside.mkdir()
    (folder / "validation-annotations-human-imagelabels.csv").rename(inside / "annotations-human-imagelabels.csv")
    (folder / "oidv6-class-descriptions.csv").write_text(CLASSES.partition("\n")[2])
    table = _read(folder)
    assert table.labels.names == ("Cat", "Dog", "Frog")
    assert table.split is not None
    assert table.split.tolist() == ["train", "train", "val"]


def test_the_split_comes_from_the_folder_of_the_image_when_no_file_tells(folder: Path) -> None:
    root = folder.rename(folder.parent / "test")  # the folder of it all says nothing
    rows = TRAIN + VALIDATION.partition("\n")[2]
    (root / "oidv6-train-annotations-human-imagelabels.csv").unlink()
    (root / "validation-annotations-human-imagelabels.csv").unlink()
    (root / "annotations-human-imagelabels.csv").write_text(rows)
    table = _read(root)
    assert table.split is not None
    assert table.split.tolist() == ["train", "train", "val"]


def test_images_elsewhere(folder: Path) -> None:
    elsewhere = folder.parent / "photos"
    (folder / "train").rename(elsewhere)
    table = _read(folder, images=str(elsewhere))
    assert table.keys.tolist() == ["aa00.jpg", "aa01.jpg"]


def test_trainable_labels_close_the_list_and_others_are_skipped(folder: Path) -> None:
    (folder / "oidv6-classes-trainable.txt").write_text("/m/0dog\n/m/0bird\n/m/0cat\n")
    _train(folder, "aa00,verification,/m/0dog,0\naa00,verification,/m/0frog,1\naa00,verification,/m/0new,1\n")
    table = _read(folder)
    assert table.labels.names == ("Dog", "Bird", "Cat")
    assert table.keys.tolist() == ["train/aa00.jpg", "validation/bb00.jpg"]
    assert table.matrix.tolist() == [[0, -1, -1], [-1, -1, 0]]
    assert "labels are the 3 trainable ones of oidv6-classes-trainable.txt" in table.notes
    assert "1 images without a verified label are left out" in table.notes


def test_one_name_of_two_classes(folder: Path) -> None:
    (folder / "oidv6-class-descriptions.csv").write_text(CLASSES.replace("Frog", "cat"))
    table = _read(folder)
    assert table.labels.names == ("Cat (/m/0cat)", "Dog", "cat (/m/0frog)")
    assert any("2 names belong to several MIDs" in note for note in table.notes)
    assert distinct_names({"a": "x", "b": "y"}) == {"a": "x", "b": "y"}


def test_what_a_machine_is_sure_of_counts_where_nobody_verified_it(folder: Path) -> None:
    _photo(folder / "train" / "aa02.jpg")
    _photo(folder / "train" / "aa03.jpg")
    rows = (
        "aa00,machine,/m/0dog,0.9\n"  # people said that there is none
        "aa00,machine,/m/0frog,0.8\n"
        "aa01,machine,/m/0cat,0.4\n"
        "aa02,machine,/m/0bird,1\n"  # nobody looked at this image
        "aa02,machine,/m/0cat,0\n"
    )
    (folder / "train-annotations-machine-imagelabels.csv").write_text(HEADER + rows)
    table = _read(folder, machine_labels=0.8)
    assert table.keys.tolist() == ["train/aa00.jpg", "train/aa01.jpg", "train/aa02.jpg", "validation/bb00.jpg"]
    assert table.labels.names == ("Bird", "Cat", "Dog", "Frog")
    assert table.matrix.tolist() == [[-1, 1, 0, 1], [-1, -1, 1, -1], [1, -1, -1, -1], [-1, 0, -1, 1]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "train", "train", "val"]
    assert "2 rows with labels that a machine made with less confidence than 0.8 are not used" in table.notes
    assert "1 images without a label are left out" in table.notes
    with pytest.raises(ConfigError, match=r"data.machine_labels must be none, or above 0 and at most 1"):
        DataConfig(machine_labels=0.0)


def test_what_a_machine_said_is_not_used(folder: Path) -> None:
    _train(
        folder,
        "aa00,verification,/m/0cat,1\naa00,machine,/m/0dog,1\naa00,verification,/m/0bird,0.7\naa01,verification,/m/0dog,0\n",
    )
    (folder / "train-annotations-machine-imagelabels.csv").write_text(HEADER + "aa00,machine,/m/0frog,0.9\n")
    (folder / "bbox_labels_600_hierarchy.json").write_text("{}")
    table = _read(folder)
    assert table.matrix[0].tolist() == [1, -1, -1]
    assert table.labels.names == ("Cat", "Dog", "Frog")
    assert "2 rows with labels that a machine made are not used" in table.notes
    assert any("train-annotations-machine-imagelabels.csv holds labels that a machine made" in n for n in table.notes)
    assert any("bbox_labels_600_hierarchy.json is not used" in n and "data.labels" in n for n in table.notes)


def test_answers_that_contradict_each_other_are_unknown_unless_there_is_a_box(folder: Path) -> None:
    (folder / "train-annotations-human-imagelabels-boxable.csv").write_text(
        HEADER + "aa00,verification,/m/0cat,1\naa00,verification,/m/0dog,1\naa01,verification,/m/0dog,0\n"
    )
    (folder / "train-annotations-bbox.csv").write_text(BOX_HEADER + "aa01,xclick,/m/0dog,1,0,0.5,0,0.5,0,0,0\n")
    table = _read(folder)
    assert table.matrix[:2].tolist() == [[1, -1, -1], [-1, 1, -1]]
    assert "1 labels were verified as present and as absent; they count as unknown" in table.notes


def test_boxes_become_pixels_and_their_labels_present(folder: Path) -> None:
    (folder / "oidv6-train-annotations-bbox.csv").write_text(
        BOX_HEADER
        + "aa01,xclick,/m/0bird,1,0.25,0.5,0.1,0.9,0,0,1\n"
        + "aa00,xclick,/m/0cat,1,0,1,0,1,0,0,0\n"
        + "aa00,xclick,/m/0cat,1,0.5,0.5,0,1,0,0,0\n"
        + "gone,xclick,/m/0cat,1,0,1,0,1,0,0,0\n"
    )
    table = _read(folder)
    assert table.labels.names == ("Bird", "Cat", "Dog", "Frog")
    assert table.matrix[1].tolist() == [1, -1, 1, -1]
    assert table.objects is not None
    assert table.objects.row.tolist() == [0, 1]
    assert table.objects.label.tolist() == [1, 0]
    np.testing.assert_allclose(table.objects.box, [[0, 0, 40, 20], [10, 2, 20, 18]], atol=1e-4)
    assert table.objects.crowd.tolist() == [False, True]
    assert "1 boxes without area are left out; their labels are kept" in table.notes


def test_boxes_of_an_image_that_cannot_be_read_are_left_out_and_said(folder: Path) -> None:
    (folder / "train" / "aa00.jpg").write_bytes(b"nothing")
    (folder / "oidv6-train-annotations-bbox.csv").write_text(BOX_HEADER + "aa00,xclick,/m/0cat,1,0,1,0,1,0,0,0\n")
    table = _read(folder)
    assert table.objects is None
    assert table.notes.count("the boxes of 1 images that cannot be read are left out") == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("aa00,x,/m/0cat,1,0.2,1.4,0,1,0,0,0", r"bbox.csv, row 2: the box from \(0.2, 0\) to \(1.4, 1\) is outside"),
        ("aa00,x,/m/0cat,1,0.9,0.1,0,1,0,0,0", r"bbox.csv, row 2: the box ends before it begins"),
        ("aa00,x,/m/0cat,1,left,1,0,1,0,0,0", r"bbox.csv, row 2, XMin: 'left' is not a number"),
        ("aa00,x,/m/0cat,1,nan,1,0,1,0,0,0", r"bbox.csv, row 2, XMin: 'nan' is not a number"),
        ("aa00,x,/m/0cow,1,0,1,0,1,0,0,0", r"bbox.csv, row 2: label '/m/0cow' is not in the class descriptions"),
    ],
)
def test_bad_boxes_name_file_and_row(folder: Path, row: str, message: str) -> None:
    (folder / "oidv6-train-annotations-bbox.csv").write_text(BOX_HEADER + row + "\n")
    with pytest.raises(DataError, match=message):
        _read(folder)


def test_a_box_outside_can_be_cut(folder: Path) -> None:
    (folder / "oidv6-train-annotations-bbox.csv").write_text(BOX_HEADER + "aa00,x,/m/0cat,1,0.5,1.4,0,1,0,0,0\n")
    table = _read(folder, boxes="clip")
    assert table.objects is not None
    assert table.objects.box.tolist() == [[20, 0, 40, 20]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("aa00,verification,/m/0cow,1\n", r"row 2: label '/m/0cow' is not in the class descriptions"),
        ("aa00,verification,/m/0cat,yes\n", r"row 2, Confidence: 'yes' is not a number"),
        ("aa00,verification,/m/0cat,2\n", r"row 2: Confidence '2' is neither 1 \(present\) nor 0"),
        ("aa00,verification\n", r"row 2: 2 cells where the header has 4"),
        ("aa00,verification,/m/0cat,1\nnot-here,verif", r"row 3: 2 cells where the header has 4; the file is cut off"),
        ('aa00,"verification,/m/0cat,1\n', r"imagelabels.csv, row \d: .*quote"),
    ],
)
def test_bad_label_rows_name_file_and_row(folder: Path, rows: str, message: str) -> None:
    _train(folder, rows)
    with pytest.raises(DataError, match=message) as caught:
        _read(folder)
    assert "oidv6-train-annotations-human-imagelabels.csv" in str(caught.value)


def test_blank_lines_do_no_harm(folder: Path) -> None:
    _train(folder, "\naa00,verification,/m/0cat,1\n\n")
    assert _read(folder).matrix[0].tolist() == [1, -1]


def test_a_label_file_without_its_columns(folder: Path) -> None:
    (folder / "validation-annotations-human-imagelabels.csv").write_text("ImageID,LabelName\nbb00,/m/0cat\n")
    with pytest.raises(
        DataError, match=r"validation-.*csv, row 1: 0 columns 'Source' \(there is: ImageID, LabelName\)"
    ):
        _read(folder)


def test_an_image_of_two_splits_is_refused(folder: Path) -> None:
    (folder / "validation-annotations-human-imagelabels.csv").write_text(VALIDATION + "aa00,verification,/m/0cat,1\n")
    with pytest.raises(DataError, match=r"validation-.*ImageID aa00 also stands in oidv6-train-.*another split"):
        _read(folder)


def test_two_files_of_one_image_are_refused(folder: Path) -> None:
    _photo(folder / "images" / "aa01.png")
    with pytest.raises(DataError, match=r"images/aa01.png and train/aa01.jpg have the same ImageID"):
        _read(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"class-descriptions.csv describes no class"),
        ("LabelName,DisplayName\n/m/0cat\n", r"class-descriptions.csv, row 2: expected a LabelName and a DisplayName"),
        ("/m/0cat,Cat\n/m/0cat,Tiger\n", r"row 2: '/m/0cat' is 'Tiger' here and 'Cat' above"),
        ('/m/0cat,"Cat\n', r"class-descriptions.csv, row \d: .*quote"),
    ],
)
def test_bad_class_descriptions(folder: Path, text: str, message: str) -> None:
    (folder / "oidv6-class-descriptions.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        _read(folder)


def test_bad_lists_of_trainable_labels(folder: Path) -> None:
    path = folder / "classes-trainable.txt"
    path.write_text("/m/0cat\n/m/0cow\n")
    with pytest.raises(DataError, match=r"classes-trainable.txt, row 2: '/m/0cow' is not in the class descriptions"):
        _read(folder)
    path.write_text("\n")
    with pytest.raises(DataError, match=r"classes-trainable.txt names no label"):
        _read(folder)


def test_text_that_is_not_utf_8(folder: Path) -> None:
    path = folder / "validation-annotations-human-imagelabels.csv"
    path.write_bytes((HEADER + "bb00,verification,/m/0cat,1\n").encode() + b"\xff\xfe,v,/m/0dog,1\n")
    with pytest.raises(DataError, match=r"validation-.*csv, row 3: not UTF-8"):
        _read(folder)


def test_links_that_lead_back_or_to_themselves(folder: Path) -> None:
    (folder / "train" / "loop").symlink_to(folder)
    (folder / "self").symlink_to(folder / "self")
    assert len(_read(folder)) == 3


def test_no_image_at_hand(folder: Path) -> None:
    for image in folder.glob("*/*.jpg"):
        image.unlink()
    _photo(folder / "other.jpg")
    with pytest.raises(DataError, match=r"holds 1 images, none of which has a label in oidv6-train.*data.images"):
        _read(folder)


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "oidv6-class-descriptions.csv").unlink()
    assert FORMAT.sniff(folder) == ""
    with pytest.raises(DataError, match=r"no class-descriptions.csv"):
        _read(folder, format="open-images")


def test_others_are_not_claimed(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("*imagelabels.csv"):
        path.unlink()
    assert FORMAT.sniff(folder) == ""
    assert FORMAT.sniff(folder / "oidv6-class-descriptions.csv") == ""
    assert FORMAT.sniff(tmp_path / "nowhere.csv") == ""
    with pytest.raises(DataError, match=r"no \*-annotations-human-imagelabels.csv"):
        _read(folder, format="open-images")

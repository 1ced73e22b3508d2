from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from labelled_files import boxes_of, put_images, put_json, table_at

from manylabel.data.read import FORMATS
from manylabel.data.table import Table
from manylabel.error import DataError

YAML = "train: images/train\nval: images/val\nnames: [cat, dog]\n"
WHOLE = "0.5 0.5 1 1"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As Ultralytics has it: two images in train, one in val."""
    put_images(tmp_path / "data", "images/train/a.jpg", "images/train/b.jpg", "images/val/c.png")
    put(tmp_path / "data/data.yaml", YAML)
    put(tmp_path / "data/labels/train/a.txt", "1 0.5 0.5 0.5 0.2\n0 0.25 0.5 0.1 1.0\n\n1 0.1 0.1 0.1 0.1\n")
    put(tmp_path / "data/labels/train/b.txt", "")
    put(tmp_path / "data/labels/val/c.txt", f"0 {WHOLE}\n")
    return tmp_path / "data"


def _splits(table: Table) -> dict[str, str]:
    assert table.split is not None
    return dict(zip(table.keys.tolist(), table.split.tolist(), strict=True))


def _is_yolo(path: Path) -> bool:
    return next((kind.name for kind in FORMATS.values() if kind.sniff(path)), "") == "yolo"


# --- Ultralytics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["", "data.yaml"])
def test_boxes_are_shares_of_the_image(folder: Path, at: str) -> None:
    table = table_at(folder / at)
    assert table.notes[0].startswith("read as YOLO (data.yaml)")
    assert table.labels.names == ("cat", "dog")
    assert table.keys.tolist() == ["images/train/a.jpg", "images/train/b.jpg", "images/val/c.png"]
    assert table.matrix.tolist() == [[1, 1], [0, 0], [1, 0]]
    assert _splits(table) == {"images/train/a.jpg": "train", "images/train/b.jpg": "train", "images/val/c.png": "val"}
    assert boxes_of(table) == [
        ("images/train/a.jpg", "dog", [10, 12, 30, 18]),
        ("images/train/a.jpg", "cat", [8, 0, 12, 30]),
        ("images/train/a.jpg", "dog", [2, 1.5, 6, 4.5]),
        ("images/val/c.png", "cat", [0, 0, 40, 30]),
    ]


def test_outlines_become_masks(folder: Path) -> None:
    put(folder / "labels/train/a.txt", "1 0.25 0 0.75 0 0.75 0.5 0.25 0.5\n0 0 0 1.004 0 1 1\n")
    table = table_at(folder)
    assert boxes_of(table)[:2] == [
        ("images/train/a.jpg", "dog", [10, 0, 30, 15]),
        ("images/train/a.jpg", "cat", [0, 0, 40, 30]),
    ]
    assert table.objects is not None
    mask = table.objects.masks[0]
    assert mask is not None
    expected = np.zeros((30, 40), bool)
    expected[:15, 10:30] = True
    assert np.array_equal(mask.pixels(30, 40), expected)
    assert table.objects.masks[2] is None  # a box


def test_confidence_and_pose_are_passed_over(folder: Path) -> None:
    put(folder / "labels/train/a.txt", f"1 {WHOLE} 0.93\n")
    assert boxes_of(table_at(folder))[0] == ("images/train/a.jpg", "dog", [0, 0, 40, 30])
    put(folder / "data.yaml", YAML + "kpt_shape: [2, 3]\n")
    put(folder / "labels/train/a.txt", f"1.0 {WHOLE} 0.1 0.1 2 0 0 0\n")
    assert boxes_of(table_at(folder))[0] == ("images/train/a.jpg", "dog", [0, 0, 40, 30])
    put(folder / "data.yaml", YAML + "kpt_shape: [2, 2]\n")  # as many numbers as an outline of four corners
    put(folder / "labels/train/a.txt", f"1 {WHOLE} 0.1 0.1 0.2 0.2\n")
    table = table_at(folder)
    assert boxes_of(table)[0][2] == [0, 0, 40, 30]
    assert table.objects is not None
    assert table.objects.masks[0] is None


def test_images_without_a_label_file_are_background(folder: Path) -> None:
    (folder / "labels/train/b.txt").unlink()
    table = table_at(folder)
    assert table.matrix[1].tolist() == [0, 0]
    assert "1 of 3 images have no label file; they show none of the classes" in table.notes


def test_names_by_number_with_gaps(folder: Path) -> None:
    put(folder / "data.yaml", "train: images/train\nval: images/val\nnc: 2\nnames:\n  1: dog\n  0: 7\n  5: never\n")
    table = table_at(folder)
    assert table.labels.names == ("7", "dog", "never")
    assert table.matrix.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert "data.yaml: nc is 2, but there are 3 names, which are used" in table.notes


def test_upright_size_of_a_turned_photo(folder: Path) -> None:
    from PIL import Image

    image = Image.new("RGB", (40, 30))
    exif = image.getexif()
    exif[274] = 6  # shown turned by a quarter
    image.save(folder / "images/train/a.jpg", exif=exif)
    put(folder / "labels/train/a.txt", f"0 {WHOLE}\n")
    assert boxes_of(table_at(folder))[0][2] == [0, 0, 30, 40]


def test_an_unreadable_image_keeps_its_labels(folder: Path) -> None:
    (folder / "images/val/c.png").write_bytes(b"no image")
    table = table_at(folder)
    assert table.matrix[2].tolist() == [1, 0]
    assert {key for key, _, _ in boxes_of(table)} == {"images/train/a.jpg"}


# --- where data.yaml says the images are ------------------------------------------------------------------------


def test_roboflow_writes_paths_that_lead_out(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        put_images(tmp_path, f"{split}/images/{split}.jpg")
        put(tmp_path / split / "labels" / f"{split}.txt", f"0 {WHOLE}\n")
    text = "train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnc: 1\nnames: ['cat']\n"
    table = table_at(put(tmp_path / "data.yaml", text).parent)
    assert _splits(table) == {"train/images/train.jpg": "train", "valid/images/valid.jpg": "val"}
    assert table.matrix.tolist() == [[1], [1]]
    assert any("train is train/images, val is valid/images" in note for note in table.notes)
    assert "data.yaml: '../test/images' of test is not there and left out" in table.notes


@pytest.mark.parametrize("top", ["../datasets/small", "/home/somebody/small", "C:\\data\\small", ".", "small", ""])
def test_path_of_another_machine(folder: Path, top: str) -> None:
    put(folder / "data.yaml", f"path: {top}\n" + YAML)
    table = table_at(folder)
    assert table.matrix.tolist() == [[1, 1], [0, 0], [1, 0]]
    assert any("paths of data.yaml are not valid here" in note for note in table.notes) == (top not in (".", ""))


def test_path_to_a_folder_inside_and_an_absolute_one(folder: Path) -> None:
    put_images(folder, "inner/pics/d.jpg")
    put(folder / "inner/pics/d.txt", f"1 {WHOLE}\n")
    put(folder / "data.yaml", "path: inner\ntrain: pics\nnames: [cat, dog]\n")
    table = table_at(folder)
    assert table.keys.tolist() == ["inner/pics/d.jpg"]
    assert table.split is None  # nothing is held out
    put(folder / "data.yaml", f"path: {folder}\n" + YAML)
    assert table_at(folder).keys.tolist()[0] == "images/train/a.jpg"


def test_paths_do_not_leave_the_folder(folder: Path) -> None:
    outside = put_images(folder.parent, "secret/images/x.jpg") / "secret/images"
    put(folder.parent / "secret/labels/x.txt", f"0 {WHOLE}\n")
    for written in (str(outside), "../secret/images"):
        put(folder / "data.yaml", f"train: {written}\nnames: [cat, dog]\n")
        table = table_at(folder)  # the end 'images' is inside
        assert {key.split("/")[0] for key in table.keys.tolist()} == {"images"}
        assert any("train is images" in note for note in table.notes)
    put(folder / "data.yaml", "train: ../secret\nnames: [cat, dog]\n")
    with pytest.raises(DataError, match=r"data\.yaml: train is '\.\./secret', which is not below .*data\.images"):
        table_at(folder)
    table = table_at(folder, images=str(folder.parent))  # the user says so
    assert table.keys.tolist() == ["secret/images/x.jpg"]
    assert table.matrix.tolist() == [[1, 0]]


def test_images_elsewhere_labels_here(folder: Path) -> None:
    (folder / "images").rename(folder.parent / "elsewhere")
    table = table_at(folder, images=str(folder.parent / "elsewhere"))
    assert table.keys.tolist() == ["train/a.jpg", "train/b.jpg", "val/c.png"]
    assert table.matrix.tolist() == [[1, 1], [0, 0], [1, 0]]


def test_lists_of_images_and_lists_of_folders(folder: Path) -> None:
    put(folder / "lists/train.txt", "../images/train/a.jpg\n\n/content/small/images/train/b.jpg\n")
    put(folder / "data.yaml", "train: [lists/train.txt]\nval:\n  - images/val\nnames: [cat, dog]\n")
    table = table_at(folder)
    assert _splits(table) == {"images/train/a.jpg": "train", "images/train/b.jpg": "train", "images/val/c.png": "val"}
    assert table.matrix.tolist() == [[1, 1], [0, 0], [1, 0]]
    put(folder / "lists/train.txt", "./images/train/a.jpg\nimages/train/gone.jpg\n")
    with pytest.raises(DataError, match=r"train\.txt, row 2: .*gone\.jpg' is not there"):
        table_at(folder)
    put(folder / "lists/train.txt", "images/train/a.jpg\n../../../etc/x.jpg\n")
    with pytest.raises(DataError, match=r"train\.txt, row 2: .*x\.jpg' leads out"):
        table_at(folder)


def test_val_that_is_train_is_no_split(folder: Path) -> None:
    put(folder / "data.yaml", "train: images/train\nval: images/train\nnames: [cat, dog]\n")
    table = table_at(folder)
    assert len(table) == 2
    assert table.split is None
    assert any("val of data.yaml has the same images as another split" in note for note in table.notes)


def test_labels_beside_the_images(tmp_path: Path) -> None:
    put_images(tmp_path, "train/a.jpg", "val/b.jpg")
    put(tmp_path / "train/a.txt", f"0 {WHOLE}\n")
    put(tmp_path / "val/b.txt", f"1 {WHOLE}\n")
    put(tmp_path / "small.yml", "train: train\nval: val\nnames: {'0': x, '1': y}\n")
    table = table_at(tmp_path)
    assert table.matrix.tolist() == [[1, 0], [0, 1]]


def test_two_yaml_files(folder: Path) -> None:
    (folder / "data.yaml").rename(folder / "one.yaml")
    put(folder / "two.yaml", YAML)
    with pytest.raises(DataError, match=r"several YOLO files \(one\.yaml, two\.yaml\)"):
        table_at(folder)
    assert len(table_at(folder / "two.yaml")) == 3


# --- without data.yaml ------------------------------------------------------------------------------------------


def test_darknet(tmp_path: Path) -> None:
    put_images(tmp_path, "obj_train_data/a.jpg", "obj_train_data/b.jpg")
    put(tmp_path / "obj.names", "cat\ndog\n\n")
    put(tmp_path / "obj_train_data/a.txt", f"1 {WHOLE}\n")
    put(tmp_path / "obj_train_data/b.txt", f"0 {WHOLE}\n")
    table = table_at(tmp_path)
    assert table.notes[0].startswith("read as YOLO (obj.names and obj_train_data/*.txt)")
    assert table.labels.names == ("cat", "dog")
    assert table.matrix.tolist() == [[0, 1], [1, 0]]
    assert table.split is None
    put(tmp_path / "train.txt", "data/obj_train_data/b.jpg\n")
    put(tmp_path / "valid.txt", "data/obj_train_data/a.jpg\n")
    assert _splits(table_at(tmp_path)) == {"obj_train_data/b.jpg": "train", "obj_train_data/a.jpg": "val"}


def test_classes_txt_beside_everything(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg", "b.jpg")
    put(tmp_path / "classes.txt", "cat\ndog\n")
    put(tmp_path / "README.txt", "1 2 3 4 5\n")
    put(tmp_path / "b.txt", f"0 {WHOLE}\n")
    table = table_at(tmp_path)
    assert table.keys.tolist() == ["a.jpg", "b.jpg"]
    assert table.matrix.tolist() == [[0, 0], [1, 0]]


def test_each_split_with_its_own_names(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        put_images(tmp_path, f"{split}/{split}.jpg")
        put(tmp_path / split / f"{split}.txt", f"1 {WHOLE}\n")
        put(tmp_path / split / "_darknet.labels", "cat\ndog\n")
    table = table_at(tmp_path)
    assert _splits(table) == {"train/train.jpg": "train", "valid/valid.jpg": "val"}
    assert table.matrix.tolist() == [[0, 1], [0, 1]]
    put(tmp_path / "valid/_darknet.labels", "dog\ncat\n")
    with pytest.raises(DataError, match=r"valid/_darknet\.labels and train/_darknet\.labels .* other classes"):
        table_at(tmp_path)


def test_bare_folders_have_numbers_for_labels(folder: Path) -> None:
    (folder / "data.yaml").unlink()
    put(folder / "labels/train/b.txt", f"10 {WHOLE}\n2 {WHOLE}\n")
    table = table_at(folder)
    assert table.notes[0].startswith("read as YOLO (labels/train/*.txt)")
    assert table.labels.names == ("0", "1", "2", "10")
    assert table.matrix.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]]
    assert _splits(table)["images/val/c.png"] == "val"
    assert any("labels are the numbers of the classes" in note for note in table.notes)
    put(folder / "labels/classes.txt", "\n".join(f"n{i}" for i in range(11)))
    table = table_at(folder)
    assert len(table.labels) == 11
    assert table.matrix.sum(1).tolist() == [2, 2, 1]


def test_a_yaml_without_names_is_not_passed_over(folder: Path) -> None:
    put(folder / "data.yaml", "train: images/train\nval: images/val\n")
    with pytest.raises(DataError, match=r"data\.yaml: no 'names' of the classes"):
        table_at(folder)


# --- what is something else -------------------------------------------------------------------------------------


def test_others_are_not_claimed(tmp_path: Path) -> None:
    put_images(tmp_path / "classes", "train/cat/a.jpg", "train/dog/b.jpg", "val/cat/c.jpg", "val/dog/d.jpg")
    assert not _is_yolo(tmp_path / "classes")  # classification data of Ultralytics are folders
    put_images(tmp_path / "captions", "images/a.jpg")
    put(tmp_path / "captions/labels/a.txt", "a cat on a mat\n")
    assert not _is_yolo(tmp_path / "captions")
    put_images(tmp_path / "beside", "a.jpg")
    put(tmp_path / "beside/a.txt", f"0 {WHOLE}\n")
    assert not _is_yolo(tmp_path / "beside")  # nothing tells what the numbers mean
    put(tmp_path / "config/train.yaml", "train: {epochs: 3}\nnames: [a]\n")
    assert not _is_yolo(tmp_path / "config")
    put(tmp_path / "config/train.yaml", "defaults: [a]\nmodel: {names: [a]}\n")
    assert not _is_yolo(tmp_path / "config/train.yaml")


def test_coco_with_yolo_labels_beside_is_coco(folder: Path) -> None:
    images = [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 30}]
    coco = {"images": images, "annotations": [], "categories": [{"id": 1, "name": "cat"}]}
    put_json(folder / "annotations/instances_train2017.json", coco)
    assert not _is_yolo(folder)
    assert _is_yolo(folder / "data.yaml")
    assert len(table_at(folder, format="yolo")) == 3


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 0.5 0.5 1 1", r"class 2 is none of the 2 in data\.yaml"),
        ("-1 0.5 0.5 1 1", r"class '-1' is no whole number"),
        ("0.5 0.5 0.5 1 1", r"class '0\.5' is no whole number"),
        ("cat 0.5 0.5 1 1", r"'cat' is not a number"),
        ("0 0.5 nan 1 1", r"'nan' is not a number"),
        ("0 0.5 0.5 1 inf", r"'inf' is not a number"),
        ("0,0.5,0.5,1,1", r"'0,0\.5,0\.5,1,1' is not a number"),
        ("0 20 15 10 10", r"20 is not between 0 and 1; write shares .* not pixels"),
        ("0 0.5 0.5 0.2 -0.2", r"-0\.2 is not between 0 and 1"),
        ("0 0.5 0.5 0 0.2", r"a width of 0 and a height of 0\.2"),
        ("0 0.5 0.5 1", r"3 numbers behind the class"),
        ("0", r"0 numbers behind the class"),
        ("0 0.1 0.1 0.2 0.2 0.3 0.3 0.4", r"7 numbers behind the class; .*kpt_shape"),
        ("0 0.1 0.1 0.2 0.1 0.3 0.1", r"the corners of the outline lie on one line"),
        ("0 0.1 0.1 0.2 0.1 0.3 1.1", r"1\.1 is not between 0 and 1"),
    ],
)
def test_errors_name_file_and_line(folder: Path, line: str, message: str) -> None:
    put(folder / "labels/train/a.txt", f"0 {WHOLE}\n\n{line}\n")
    with pytest.raises(DataError, match=rf"labels/train/a\.txt, line 3: {message}"):
        table_at(folder)


def test_boxes_that_reach_out_can_be_cut(folder: Path) -> None:
    put(folder / "labels/train/a.txt", "0 0.9 0.5 0.4 1\n")
    with pytest.raises(DataError, match=r"labels/train/a\.txt: the box of 'cat' .* is outside"):
        table_at(folder)
    assert boxes_of(table_at(folder, boxes="clip"))[0][2] == [28, 0, 40, 30]
    put(folder / "labels/train/a.txt", "0 0.5 0.5 1.2 0.5 1.2 1.2\n")
    table = table_at(folder, boxes="clip")
    assert boxes_of(table)[0][2] == [20, 15, 40, 30]
    assert table.objects is not None
    assert table.objects.masks[0] is not None
    assert table.objects.masks[0].pixels(30, 40)[:15].sum() == 0


def test_labels_whose_image_is_gone(folder: Path) -> None:
    put(folder / "labels/train/gone.txt", f"0 {WHOLE}\n")
    put(folder / "labels/train/notes.txt", "nothing about an image\n")
    with pytest.raises(DataError, match=r"labels/train/gone\.txt: 'images/train/gone\.jpg' is not there"):
        table_at(folder)
    assert len(table_at(folder, missing="drop")) == 3


def test_no_label_file_at_all(folder: Path) -> None:
    (folder / "labels").rename(folder / "annotated")
    with pytest.raises(DataError, match=r"none of the 3 images has a label file"):
        table_at(folder)


def test_labels_that_cannot_be_read(folder: Path) -> None:
    file = folder / "labels/train/a.txt"
    file.write_bytes(f"0 {WHOLE}\n0 0.5 \xe9\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.txt, row 2: not UTF-8"):
        table_at(folder)
    file.unlink()
    file.symlink_to(file)
    with pytest.raises(DataError, match=r"a\.txt is no file but .* a link that leads nowhere"):
        table_at(folder)


def test_a_link_back_to_the_images(folder: Path) -> None:
    (folder / "images/train/again").symlink_to(folder / "images/train")
    assert len(table_at(folder)) == 3


def _bomb() -> str:
    """A few lines that stand for ten thousand million names."""
    lines = ["l0: &l0 {k: v}"] + [f"l{i}: &l{i} {{<<: [{', '.join([f'*l{i - 1}'] * 10)}]}}" for i in range(1, 11)]
    return "\n".join([*lines, "train: images/train", "names: *l10", ""])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- train\n- names\n", r"it must say 'train: …'"),
        ("", r"it must say 'train: …'"),
        ("train: images/train\nnames: 3\n", r"no 'names' of the classes"),
        ("train: images/train\nnames: []\n", r"no 'names' of the classes"),
        ("train: images/train\nnames: [yes, no]\n", r"names: class 0 has no name but a bool; yes, no, on and off need"),
        ("train: images/train\nnames: [[a]]\n", r"names: class 0 has no name but a list"),
        ("train: images/train\nnames: {0: a, b: c}\n", r"names: every key must be the number of a class"),
        ("train: images/train\nnames: {0: a, 1: }\n", r"names: class 1 has no name but a NoneType"),
        ("train: images/train\nnames: [cat, Cat]\n", r"'cat' and 'Cat' are the same but for case"),
        ("train: images/train\nnames: [cat, <b>dog</b>]\n", r"looks like markup"),
        ("train: 3\nnames: [a]\n", r"'train' must be a folder of images"),
        ("train: \nnames: [a]\n", r"neither 'train' nor 'val' names a folder"),
        ("train: images/train\nnames: [a]\nkpt_shape: [1e9]\n", r"'kpt_shape' must be two whole numbers"),
        ("train: images/train\nnames: [a\n", r", row 3: no valid YAML"),
        ("train: images/train\nnames: !!python/object/apply:os.getcwd []\n", r", row 2: no valid YAML"),
        ("train: images/train\nnames: " + "[" * 5000, r": no valid YAML"),
        ("train: 2001-99-99\nnames: [a]\n", r": no valid YAML"),
        (_bomb(), r", row 2: no valid YAML \(a reference"),
        ("train: gone\nnames: [a]\n", r"train is 'gone', which is not below"),
        ("train: '" + "x" * 5000 + "'\nnames: [a]\n", r"which is not below"),
        ('train: "a\\0b"\nnames: [a]\n', r"which is not below"),
    ],
)
def test_hostile_yaml(folder: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"data\.yaml.*{message}"):
        table_at(put(folder / "data.yaml", text), format="yolo")


def test_a_broken_yaml_is_still_found(folder: Path) -> None:
    put(folder / "data.yaml", YAML + "\tnc: 2\n")
    with pytest.raises(DataError, match=r"data\.yaml, row 4: no valid YAML"):
        table_at(folder)

"""PASCAL VOC: official folders, several years, exports of labelling tools, difficult objects, masks, hostile XML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHARED
from labelled_files import boxes_of, put_images, table_at
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.convert import convert
from manylabel.data.mask import LabelImage, RunLength
from manylabel.data.read.voc import FORMAT
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

DOG, CAT = ("dog", (5, 6, 20, 25)), ("cat", (1, 1, 40, 30))
BOMB = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<annotation><filename>&b;</filename></annotation>"""
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<annotation><filename>&a;</filename></annotation>"""


@pytest.fixture
def voc_small() -> Path:
    folder = SHARED / "voc12-small"
    if not folder.is_dir():
        pytest.skip("needs the real VOC sample beside the repository (../shared/data/voc12-small)")
    return folder


def xml(*objects: tuple[Any, ...], name: str = "x.jpg", size: tuple[int, int] | None = (40, 30)) -> str:
    """An annotation; each object is (label, corners) and 'difficult' if it is."""
    text = f"<annotation>\n<filename>{name}</filename>\n"
    if size:
        text += f"<size><width>{size[0]}</width><height>{size[1]}</height><depth>3</depth></size>\n"
    for label, corners, *difficult in objects:
        places = zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
        frame = "".join(f"<{key}>{value}</{key}>" for key, value in places)
        text += f"<object><name>{label}</name><difficult>{len(difficult)}</difficult><bndbox>{frame}</bndbox>"
        text += "<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part></object>\n"
    return text + "</annotation>\n"


def put(folder: Path, **files: str) -> Path:
    """Official folders with an image for each XML text."""
    (folder / "Annotations").mkdir(parents=True, exist_ok=True)
    put_images(folder / "JPEGImages", *(f"{stem}.jpg" for stem in files))
    for stem, text in files.items():
        (folder / "Annotations" / f"{stem}.xml").write_text(text, encoding="utf-8")
    return folder


def put_sets(folder: Path, kind: str = "Main", **sets: str) -> Path:
    (folder / "ImageSets" / kind).mkdir(parents=True, exist_ok=True)
    for name, text in sets.items():
        (folder / "ImageSets" / kind / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def splits_of(table: Table) -> dict[str, str]:
    assert table.split is not None
    return dict(zip(table.keys.tolist(), table.split.tolist(), strict=True))


def test_boxes_start_at_zero_and_difficult_labels_are_unknown(tmp_path: Path) -> None:
    table = table_at(
        put(
            tmp_path,
            a=xml(DOG, CAT, ("cat", (2.5, 3, 4, 5.5), "difficult")),
            b=xml(("dog", (1, 1, 9, 9), "difficult"), CAT),
            c=xml(),
        )
    )
    assert table.labels.names == ("cat", "dog")  # 'head' is a part, not a label
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert table.matrix.tolist() == [[PRESENT, PRESENT], [PRESENT, UNKNOWN], [ABSENT, ABSENT]]
    assert boxes_of(table) == [
        ("a.jpg", "dog", [4, 5, 20, 25]),
        ("a.jpg", "cat", [0, 0, 40, 30]),
        ("a.jpg", "cat", [1.5, 2, 4, 5.5]),
        ("b.jpg", "dog", [0, 0, 9, 9]),
        ("b.jpg", "cat", [0, 0, 40, 30]),
    ]
    assert table.objects is not None
    assert table.objects.difficult.tolist() == [False, False, True, True, False]
    assert table.split is None
    assert "read as PASCAL VOC (Annotations/*.xml)" in table.notes[0]


def test_splits_are_the_main_sets_and_the_rest_is_left_out(tmp_path: Path) -> None:
    folder = put(tmp_path, **{stem: xml(DOG) for stem in "abcd"})
    put_sets(folder, train="a\n", val="b  1\n\n", trainval="a\nb\n", test="c.jpg\n", dog_train="a 1\n")
    put_sets(folder, "Segmentation", train="d\n")
    table = table_at(folder)
    assert splits_of(table) == {"a.jpg": "train", "b.jpg": "val", "c.jpg": "test"}
    assert any("ImageSets/Main" in note and "splits" in note for note in table.notes)
    assert any("1 annotated images are in none of ImageSets/Main" in note for note in table.notes)


def test_segmentation_sets_where_there_are_no_main_sets(tmp_path: Path) -> None:
    table = table_at(put_sets(put(tmp_path, a=xml(DOG), b=xml(CAT)), "Segmentation", train="b\n", val="a\n"))
    assert splits_of(table) == {"b.jpg": "train", "a.jpg": "val"}
    assert any("ImageSets/Segmentation" in note for note in table.notes)


def test_trainval_is_training_where_it_is_not_divided(tmp_path: Path) -> None:
    table = table_at(put_sets(put(tmp_path, a=xml(DOG), b=xml(CAT)), trainval="a\n", test="b\n"))
    assert splits_of(table) == {"a.jpg": "train", "b.jpg": "test"}


def test_sets_of_other_images_are_not_used(tmp_path: Path) -> None:
    table = table_at(put_sets(put(tmp_path, a=xml(DOG)), train="x\n"))
    assert table.split is None
    assert any("names no image that is annotated" in note for note in table.notes)


def test_images_of_a_set_without_annotations_are_left_out(tmp_path: Path) -> None:
    folder = put_sets(put(tmp_path, a=xml(DOG)), train="a\n", test="secret\n")
    put_images(folder / "JPEGImages", "secret.jpg")
    table = table_at(folder)
    assert splits_of(table) == {"a.jpg": "train"}
    assert any("1 images of the sets have no annotation" in note for note in table.notes)


def test_a_set_that_names_nothing_names_its_line(tmp_path: Path) -> None:
    folder = put_sets(put(tmp_path, a=xml(DOG)), train="a\ngone\nlost\n")
    with pytest.raises(
        DataError, match=r"Main/train\.txt, row 2: .*neither an image nor an XML.*'gone' \(and 1 more\)"
    ):
        table_at(folder)
    table = table_at(folder, missing="drop")
    assert splits_of(table) == {"a.jpg": "train"}
    assert any("2 images of the sets are not there" in note for note in table.notes)


def test_an_image_in_two_splits_is_refused(tmp_path: Path) -> None:
    folder = put_sets(put(tmp_path, a=xml(DOG), b=xml(CAT)), train="a\nb\n", val="b\n")
    with pytest.raises(DataError, match=r"Main/val\.txt, row 1: 'b' is in Main/train\.txt, row 2, too"):
        table_at(folder)


@pytest.mark.parametrize("inside", ["", "VOCdevkit"])
def test_several_years_are_read_together(tmp_path: Path, inside: str) -> None:
    kit = tmp_path / inside
    put_sets(put(kit / "VOC2007", a=xml(DOG)), test="a\n")
    put_sets(put(kit / "VOC2012", a=xml(CAT)), train="a\n")
    table = table_at(tmp_path)
    assert splits_of(table) == {"VOC2007/JPEGImages/a.jpg": "test", "VOC2012/JPEGImages/a.jpg": "train"}
    assert table.matrix.tolist() == [[0, 1], [1, 0]]
    assert table.source.describe("VOC2012/JPEGImages/a.jpg") == (40, 30)


def test_xml_beside_the_images_in_folders_of_splits(tmp_path: Path) -> None:
    for folder in ("train", "valid", "test"):
        put_images(tmp_path, f"{folder}/photo.rf.123.jpg")
        (tmp_path / folder / "photo.rf.123.xml").write_text(xml(DOG, name="another.jpg"))
    table = table_at(tmp_path)
    expected = {"test": "test", "train": "train", "valid": "val"}
    assert splits_of(table) == {f"{folder}/photo.rf.123.jpg": split for folder, split in expected.items()}


def test_xml_beside_the_images_and_names_that_only_the_xml_knows(tmp_path: Path) -> None:
    put_images(tmp_path, "IMG 1.png", "b.jpg")
    (tmp_path / "a.xml").write_text(xml(DOG, name="C:\\photos\\IMG 1.png", size=None))
    (tmp_path / "b.XML").write_text(xml(CAT, name="elsewhere.jpg", size=(0, 0)))
    table = table_at(tmp_path)
    assert table.keys.tolist() == ["IMG 1.png", "b.jpg"]
    assert table.split is None


def test_annotations_and_images_in_folders_of_small_letters(tmp_path: Path) -> None:
    put_images(tmp_path / "images", "a.png")
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "a.xml").write_text(xml(DOG))
    table = table_at(tmp_path)
    assert table.keys.tolist() == ["a.png"]
    moved = put_images(tmp_path / "moved", "a.png")
    assert table_at(tmp_path, images=str(moved)).source.path("a.png") == moved / "a.png"  # type: ignore[attr-defined]


def test_masks_are_found_and_survive_as_coco(tmp_path: Path) -> None:
    folder = put(tmp_path / "in", a=xml(DOG, CAT), b=xml(("dog", (1, 1, 9, 9), "difficult")))
    values = np.zeros((30, 40), np.uint8)
    values[6:25, 5:20], values[25, :], values[26:, :] = 1, 255, 2
    (folder / "SegmentationObject").mkdir()
    Image.fromarray(values).save(folder / "SegmentationObject" / "a.png")
    table = table_at(folder)
    assert table.objects is not None
    dog, _, other = table.objects.masks
    assert other is None
    assert isinstance(dog, LabelImage)
    np.testing.assert_array_equal(dog.pixels(30, 40), values == 1)
    np.testing.assert_array_equal(dog.void(30, 40), values == 255)
    convert(DataConfig(path=str(folder)), tmp_path / "out", "coco", images="copy")
    again = table_at(tmp_path / "out")
    np.testing.assert_array_equal(again.matrix, table.matrix)
    assert boxes_of(again) == boxes_of(table)
    assert again.objects is not None
    assert again.objects.difficult.tolist() == [False, False, True]
    written = again.objects.masks[1]
    assert isinstance(written, RunLength)
    np.testing.assert_array_equal(written.pixels(30, 40), values == 2)


def test_other_xml_is_not_claimed(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg")
    (tmp_path / "project.xml").write_text("<project><a/></project>")
    assert FORMAT.sniff(tmp_path) == ""
    assert FORMAT.sniff(tmp_path / "project.xml") == ""
    assert FORMAT.sniff(tmp_path / "absent") == ""


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, r"b\.xml defines a document type or entities.*attack"),
        (OUTSIDE, r"b\.xml defines a document type or entities"),
        (xml(DOG)[:-40], r"b\.xml, row \d+: cut off or no valid XML"),
        ("", r"b\.xml, row 1: cut off or no valid XML"),
        (
            "<annotation>\n<filename>ä</filename>\n<a>&nothing;</a></annotation>",
            r"b\.xml, row 3: cut off or no valid XML",
        ),
        ("<kml></kml>", r"b\.xml: <kml> where a PASCAL VOC file has <annotation>"),
        ("<?xml version='1.0' encoding='klingon'?><annotation/>", r"b\.xml.*(encoding|no valid XML)"),
        (xml(DOG, ("", (1, 1, 2, 2))), r"Annotations/b\.xml, object 2: it has no <name>"),
        ("<annotation><object><name>dog</name></object></annotation>", r"b\.xml, object 1 \(dog\): it has no <bndbox>"),
        (xml(("dog", (1, "x", 2, 2))), r"object 1 \(dog\), <ymin>: 'x' is not a number"),
        (xml(("dog", (1, 1, "inf", 2))), r"object 1 \(dog\), <xmax>: 'inf' is not a number"),
        (xml(("dog", (1, 1, 2, ""))), r"object 1 \(dog\), <ymax>: ''"),
        (xml(("dog", (9, 1, 2, 2))), r"object 1 \(dog\): the box ends at \(2, 2\) before it begins \(9, 1\)"),
        (xml(("dog", (9, 9, 90, 20))), r"Annotations/b\.xml: the box of 'dog' .*is outside.*40×30.*data\.boxes=clip"),
        (xml(("&lt;img src=x&gt;", (9, 9, 10, 20))), r"'<img src=x>' looks like markup"),
    ],
)
def test_an_error_names_file_and_object(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        table_at(put(tmp_path, a=xml(DOG), b=text))


def test_bytes_that_are_not_utf8_name_the_file(tmp_path: Path) -> None:
    folder = put(tmp_path, a=xml(DOG), b=xml(CAT))
    (folder / "Annotations" / "b.xml").write_bytes(xml(CAT).encode().replace(b"cat", b"c\xe4t"))
    with pytest.raises(DataError, match=r"b\.xml, row 4: cut off or no valid XML"):
        table_at(folder)


def test_an_annotation_without_its_image_is_told(tmp_path: Path) -> None:
    folder = put(tmp_path, a=xml(DOG), b=xml(CAT))
    (folder / "JPEGImages" / "b.jpg").unlink()
    with pytest.raises(
        DataError, match=r"1 of 2 image files are missing(.|\n)*Annotations/b\.xml: 'x\.jpg' is not there"
    ):
        table_at(folder)
    assert table_at(folder, missing="drop").keys.tolist() == ["a.jpg"]


def test_links_that_lead_to_themselves_do_no_harm(tmp_path: Path) -> None:
    folder = put(tmp_path, a=xml(DOG))
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "JPEGImages" / "loop").symlink_to(folder / "JPEGImages" / "loop")
    assert table_at(folder).keys.tolist() == ["a.jpg"]
    (folder / "Annotations" / "z.xml").symlink_to(folder / "Annotations" / "z.xml")
    with pytest.raises(DataError, match=r"cannot read .*z\.xml: "):
        table_at(folder)


def test_an_xml_file_of_many_megabytes_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path, a=xml(DOG), b=xml(CAT))
    with open(folder / "Annotations" / "b.xml", "ab") as file:
        file.truncate(20 << 20)
    with pytest.raises(DataError, match=r"b\.xml has more than 10 MiB"):
        table_at(folder)


# --- the real thing ---------------------------------------------------------------------------------------------


def test_the_real_sample_needs_no_options(voc_small: Path) -> None:
    table = table_at(voc_small)
    assert [int((table.split == part).sum()) for part in ("train", "val")] == [1464, 724]
    assert len(table) == 2188
    assert len(table.labels) == 20
    assert {"aeroplane", "person", "tvmonitor"} <= set(table.labels)
    assert table.objects is not None
    assert (len(table.objects), int(table.objects.difficult.sum())) == (5225, 612)
    assert any("ImageSets/Segmentation" in note for note in table.notes)
    assert (table.matrix == UNKNOWN).sum() == 185


def test_real_masks_belong_to_their_boxes(voc_small: Path) -> None:
    """Every 20th image and those whose masks are not numbered like their boxes: the classes must agree."""
    table = table_at(voc_small)
    objects = table.objects
    assert objects is not None
    odd = {"2007_000793.jpg", "2009_001768.jpg", "2009_005069.jpg", "2010_001966.jpg"}
    overlaps = []
    for row, key in enumerate(table.keys.tolist()):
        if row % 20 and key not in odd:
            continue
        classes = np.array(Image.open(voc_small / "SegmentationClass" / f"{key[:-4]}.png"))
        for i in objects.of(row):
            mask = objects.masks[i]
            assert isinstance(mask, LabelImage)
            pixels = mask.pixels(*classes.shape)
            if not pixels.any():
                continue
            assert set(np.unique(classes[pixels])) == {objects.label[i] + 1}, (key, i)  # labels are sorted, as theirs
            left, top, right, bottom = objects.box[i]
            inside = pixels[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))].sum()
            overlaps.append(inside / pixels.sum())
    assert len(overlaps) > 200
    assert np.mean(np.array(overlaps) > 0.9) > 0.95

"""Overlays, the contact sheet, the folder they are written to, and the maps of a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from explained import bundle, photos
from PIL import Image

from manylabel.error import DecodeError, ManylabelError
from manylabel.explain import Explanation, explain
from manylabel.explain.explainer import Explainer
from manylabel.explain.frame import Frame
from manylabel.explain.overlay import captioned, heated, overlay
from manylabel.explain.picture_folder import SHEET, PictureFolder, safe
from manylabel.explain.sheet import contact_sheet
from manylabel.explain.shown_images import with_overlays


def spot(label: str = "cat", row: int = 1, column: int = 5) -> Explanation:
    grid = np.zeros((8, 8), np.float32)
    grid[row, column] = 1
    photo = Image.new("RGB", (160, 120), (100, 110, 120))
    return Explanation(
        "a/b.jpg", label, 0.87, 0.4, True, "grad_cam", "final", {"final": grid}, size=photo.size,
        frame=Frame(0, 0, 1, 1), photo=photo,
    )  # fmt: skip


def test_heat_lies_where_the_map_is_high() -> None:
    picture = np.asarray(overlay(spot(), 320)).astype(int)
    assert picture.shape == (240, 320, 3)
    changed = np.abs(picture - picture[-1, 0]).sum(axis=2)
    row, column = np.unravel_index(changed.argmax(), changed.shape)
    assert abs(row - 240 * 1.5 / 8) < 6
    assert abs(column - 320 * 5.5 / 8) < 6
    assert changed[120:].max() == 0  # far from it the photo is as quiet as everywhere


def test_a_map_of_zeros_leaves_the_photo() -> None:
    photo = photos(1)[0]
    quiet = np.asarray(heated(photo, np.zeros((60, 80))))
    assert quiet.std() > 10
    assert quiet.mean() > np.asarray(photo).mean()


def test_captions_take_any_name() -> None:
    plain, long = captioned(spot()), captioned(spot("x" * 500))
    assert plain.size == long.size
    assert plain.height > 336
    written = np.asarray(plain)[340:]
    assert (written < 100).any()
    captioned(spot("שלום كلب 🐶\nnew line"))


def test_the_sheet_has_a_row_for_each_image() -> None:
    unreadable = Explanation("bad.jpg", error="it is a PDF")
    small = contact_sheet([[spot()]])
    large = contact_sheet([[spot(), spot("dog")], [unreadable], [spot()]], left_out=3)
    assert large.width > 1.3 * small.width
    assert large.height > 2.4 * small.height
    assert contact_sheet([[unreadable]]).width > 200


def test_files_are_named_by_image_and_label(tmp_path: Path) -> None:
    folder = PictureFolder(tmp_path / "out", heads=True)
    rows = [[*explain(bundle("head.name=ml_decoder", "head.heads=2", "head.dim=16"), photos(1), ["cat", "fox"])]]
    ((cat, *heads), (fox, *_)) = folder.add(rows[0])
    assert cat.name == "0001-image_1-cat.png"
    assert [path.name for path in heads] == ["0001-image_1-cat-head1.png", "0001-image_1-cat-head2.png"]
    assert fox.name == "0001-image_1-fox.png"
    assert folder.add([Explanation("bad.jpg", error="broken")]) == [[]]
    assert folder.close() == tmp_path / "out" / SHEET
    with pytest.raises(ManylabelError, match="replace it with --overwrite"):
        PictureFolder(tmp_path / "out")
    PictureFolder(tmp_path / "out", overwrite=True).add(rows[0])
    assert safe("../../etc/passwd") == "etc_passwd"
    assert safe("…") == "x"


def test_labels_that_look_alike_in_a_file_name_have_files_of_their_own(tmp_path: Path) -> None:
    files = PictureFolder(tmp_path).add(
        [spot("C++"), spot("C#"), spot("c"), spot("x" * 60 + "1"), spot("x" * 60 + "2")]
    )
    assert len({path.name.casefold() for (path,) in files}) == 5


def test_pictures_of_others_are_never_replaced(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / SHEET)
    with pytest.raises(ManylabelError, match=r"sheet.png is there already and was not written by manylabel"):
        PictureFolder(tmp_path, overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ManylabelError, match="is not a folder"):
        PictureFolder(tmp_path / "file")


class Photos:
    def read(self, key: str, at_least: int | None = None) -> Image.Image:
        if key == "bad":
            raise DecodeError("broken")
        return photos(int(key) + 1)[-1]


def test_the_report_gets_a_map_for_each_image() -> None:
    details = {
        "mistakes": [{"file": "0", "label": "cat"}, {"file": "bad", "label": "cat"}, {"file": "0", "label": "dog"}],
        "hits": [{"file": "2", "label": "fox"}],
        "history": [],
    }
    shown = with_overlays(bundle(), Photos(), details)  # type: ignore[arg-type]
    overlays = [image["overlay"] for image in (*shown["mistakes"], *shown["hits"])]
    assert overlays[1] is None
    assert all(text.startswith("data:image/jpeg;base64,") for i, text in enumerate(overlays) if i != 1)
    assert len(set(overlays)) == 4
    assert shown["explained"].startswith("The second picture: where it looked for the label (grad-cam, final)")
    assert "overlay" not in details["hits"][0]


def test_a_model_that_cannot_be_explained_is_said_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no gradient here")

    monkeypatch.setattr(Explainer, "explain_batch", fail)
    details = {"mistakes": [{"file": "0", "label": "cat"}], "hits": []}
    shown = with_overlays(bundle(), Photos(), details)  # type: ignore[arg-type]
    assert shown["mistakes"] == details["mistakes"]
    assert shown["explained"] == "There are no maps beside the photos: no gradient here."

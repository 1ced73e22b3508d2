from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from manylabel.data.source import FileSource, SceneSource
from manylabel.data.write.place_images import ImagePlacer
from manylabel.error import DataError


def _photo(path: Path, shade: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (16 + shade, 16), (shade, 90, 90)).save(path)
    return path


@pytest.mark.parametrize("how", ["link", "copy"])
def test_images_keep_their_names_and_bytes(tmp_path: Path, how: str) -> None:
    original = _photo(tmp_path / "from" / "a" / "b.jpg")
    placer = ImagePlacer(FileSource(tmp_path / "from"), tmp_path / "to", how)  # type: ignore[arg-type]
    assert placer.place("a/b.jpg") == "a/b.jpg"
    placed = tmp_path / "to" / "a" / "b.jpg"
    assert placed.read_bytes() == original.read_bytes()
    assert (placed.stat().st_ino == original.stat().st_ino) == (how == "link")
    assert ImagePlacer(FileSource(tmp_path / "from"), tmp_path / "to", how).place("a/b.jpg") == "a/b.jpg"  # type: ignore[arg-type]


def test_no_image_leaves_the_folder_or_replaces_another(tmp_path: Path) -> None:
    outside = _photo(tmp_path / "c.jpg", 40)
    _photo(tmp_path / "from" / "c.jpg")
    placer = ImagePlacer(FileSource(tmp_path / "from"), tmp_path / "to", "copy")
    assert placer.place("../c.jpg") == "c.jpg"
    assert (tmp_path / "to" / "c.jpg").read_bytes() == outside.read_bytes()
    with pytest.raises(DataError, match="would both be written to"):
        placer.place("c.jpg")
    name = placer.place(str(outside))
    assert not name.startswith("/")
    assert (tmp_path / "to" / name).is_file()
    with pytest.raises(DataError, match="is there already and is another image"):
        ImagePlacer(FileSource(tmp_path / "from"), tmp_path / "to", "link").place("c.jpg")


def test_drawn_images_are_saved(tmp_path: Path) -> None:
    placer = ImagePlacer(SceneSource(0, 64), tmp_path, "copy")
    assert placer.place("scene-000003") == "scene-000003.png"
    assert Image.open(tmp_path / "scene-000003.png").size == (64, 64)
    with pytest.raises(DataError, match="--images copy"):
        ImagePlacer(SceneSource(0, 64), tmp_path, "leave").note()

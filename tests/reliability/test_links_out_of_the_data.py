"""What `data convert` hands out of a data folder whose names are links: images, and nothing else."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command import manylabel
from PIL import Image

from manylabel.data.source import FileSource
from manylabel.data.write import TARGETS
from manylabel.data.write.place_images import ImagePlacer
from manylabel.error import DecodeError

SECRET = b"root:$6$salt$hash:19000:0:99999:7:::\n"
Folder = Callable[..., Path]


def _photo(path: Path, shade: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (24, 16), (shade, 90, 90)).save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve photos with labels."""
    data = tmp_path / "data"
    for number in range(12):
        _photo(data / f"{number:02d}.jpg", number)
    rows = "".join(f"{number:02d}.jpg,{'cat' if number % 2 else 'dog'}\n" for number in range(12))
    (data / "labels.csv").write_text("file_name,labels\n" + rows)
    return data


def _instead(data: Path, number: int, other: Path) -> None:
    path = data / f"{number:02d}.jpg"
    path.unlink()
    path.symlink_to(other)


def _all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("how", ["copy", "link"])
@pytest.mark.parametrize("to", sorted(TARGETS))
def test_a_link_to_a_private_file_is_not_handed_out(tmp_path: Path, folder: Path, to: str, how: str) -> None:
    secret = tmp_path / "private" / "shadow"
    secret.parent.mkdir()
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    _instead(folder, 3, secret)
    out = tmp_path / "out"
    refused = manylabel("data", "convert", folder, out, "--to", to, "--images", how)
    assert refused.returncode == 2
    assert "1 of 12 images cannot be taken: 03.jpg (not an image" in refused.stderr
    assert SECRET not in _all_bytes(out)
    done = manylabel(
        "data", "convert", folder, out, "--to", to, "--images", how, "--set", "data.max_bad_share=0.1", "--overwrite"
    )
    assert done.returncode == 0, done.stderr
    assert "1 images were left out: 03.jpg" in done.stdout
    assert "11 images and 2 labels are in" in done.stdout
    assert SECRET not in _all_bytes(out)
    assert "03.jpg" not in "".join(path.read_text() for path in out.rglob("*.*") if path.suffix in (".csv", ".json"))


def test_links_that_lead_out_of_the_data_folder_are_counted_and_named(tmp_path: Path, folder: Path) -> None:
    for number in range(5):
        _instead(folder, number, _photo(tmp_path / "store" / f"x{number}.jpg", 100 + number))
    (folder / "kept").mkdir()
    os.rename(folder / "07.jpg", folder / "kept" / "seven.jpg")
    (folder / "07.jpg").symlink_to("kept/seven.jpg")  # a link that stays inside
    done = manylabel("data", "convert", folder, tmp_path / "out", "--to", "csv", "--images", "copy")
    assert done.returncode == 0, done.stderr
    place = os.path.realpath(tmp_path / "store")
    assert "5 images are reached by links that lead out of the data folder: 00.jpg (at" in done.stdout
    assert f"(at {place}/x2.jpg) … and 2 more" in done.stdout
    assert (tmp_path / "out/images/00.jpg").read_bytes() == (tmp_path / "store/x0.jpg").read_bytes()
    assert not (tmp_path / "out/images/00.jpg").is_symlink()
    assert "reached by links" not in manylabel("data", "convert", folder, tmp_path / "o.csv", "--to", "csv").stdout


def test_a_shard_behind_a_link_is_told(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with tarfile.open(elsewhere / "train-000.tar", "w") as tar:
        for number in range(3):
            tar.add(_photo(elsewhere / f"{number}.jpg", number), f"{number}.jpg")
            (elsewhere / "x").write_text("cat" if number % 2 else "dog")
            tar.add(elsewhere / "x", f"{number}.cls")
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/train-000.tar").symlink_to(elsewhere / "train-000.tar")
    done = manylabel("data", "convert", tmp_path / "shards", tmp_path / "out", "--to", "csv", "--images", "copy")
    assert done.returncode == 0, done.stderr
    assert "3 images are reached by links that lead out of the data folder" in done.stdout


@pytest.mark.parametrize("how", ["copy", "link"])
def test_modes_are_kept(tmp_path: Path, folder: Path, how: str) -> None:
    modes = {"00.jpg": 0o600, "01.jpg": 0o440, "02.jpg": 0o664}
    for name, mode in modes.items():
        (folder / name).chmod(mode)
    done = manylabel("data", "convert", folder, tmp_path / "out", "--to", "csv", "--images", how)
    assert done.returncode == 0, done.stderr
    for name, mode in modes.items():
        assert stat.S_IMODE((tmp_path / "out/images" / name).stat().st_mode) == mode


def test_a_file_that_is_exchanged_while_it_is_looked_at_does_not_leave(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment between the look and the copy: the name leads elsewhere then."""
    (tmp_path / "secret").write_bytes(SECRET)
    honest = (folder / "00.jpg").read_bytes()
    fstat = os.fstat

    def exchange(handle: int) -> os.stat_result:
        if not (folder / "00.jpg").is_symlink():
            _instead(folder, 0, tmp_path / "secret")
        return fstat(handle)

    for how in ("copy", "link"):
        (folder / "00.jpg").unlink()
        (folder / "00.jpg").write_bytes(honest)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", exchange)
            ImagePlacer(FileSource(folder), tmp_path / how, how).place("00.jpg")  # type: ignore[arg-type]
        assert (folder / "00.jpg").is_symlink()
        assert (tmp_path / how / "00.jpg").read_bytes() == honest


def test_a_pipe_does_not_hang_and_large_images_are_images(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.mkfifo(data / "pipe.jpg")
    placer = ImagePlacer(FileSource(data), tmp_path / "to", "copy")
    with pytest.raises(DecodeError, match="not a regular file"):
        placer.place("pipe.jpg")
    Image.new("1", (9000, 8000)).save(data / "large.png")  # 72 megapixels, more than is read
    assert placer.place("large.png") == "large.png"

"""Archives that would write where they should not, or more than they should."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from loopback import archive_of, tar_of, zip_of

from manylabel.data.fetch import Archive
from manylabel.data.fetch.unpack import unpack
from manylabel.error import DataError


def run(tmp_path: Path, content: bytes, archive: Archive | None = None, splits: tuple[str, ...] = ()) -> int:
    path = tmp_path / "toy.archive"
    path.write_bytes(content)
    return unpack(path, archive or archive_of(content), tmp_path / "out", splits=splits, advance=lambda count: None)


def tar_with(info: tarfile.TarInfo, content: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_files_arrive_where_they_belong(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    content = make({"a/b/one.txt": b"1" * 5000, "two.txt": b"2", "empty": b""})
    steps: list[int] = []
    path = tmp_path / "x"
    path.write_bytes(content)
    files = unpack(path, archive_of(content, unpacked=5001), tmp_path / "out", advance=steps.append)
    assert files == 3
    assert (tmp_path / "out/a/b/one.txt").read_bytes() == b"1" * 5000
    assert (tmp_path / "out/empty").read_bytes() == b""
    assert sum(steps) == 5001


@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "..\\evil", "C:/evil", "a/..\\..\\..\\evil"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, make, name: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match="outside"):
        run(tmp_path, make({name: b"evil"}))
    assert list(tmp_path.rglob("*evil*")) == []
    assert not Path("/evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("trap")
    info.type, info.linkname = kind, "/etc"
    with pytest.raises(DataError, match=r"'trap', a (link|special file)"):
        run(tmp_path, tar_with(info))


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("trap")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, "/etc")
    with pytest.raises(DataError, match="'trap', a link"):
        run(tmp_path, buffer.getvalue())


def test_a_link_that_was_there_before_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="leads outside"):
        run(tmp_path, tar_of({"a/file": b"x"}))
    (tmp_path / "out" / "direct").symlink_to(tmp_path / "elsewhere" / "file")
    with pytest.raises(DataError, match="is a link"):
        run(tmp_path, tar_of({"direct": b"x"}))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("files", [{"zeros": bytes(5_000_000)}, {f"z{i}": bytes(50_000) for i in range(100)}])
def test_a_bomb_stops_at_a_tenth_more_than_the_catalogue_says(tmp_path: Path, files: dict[str, bytes]) -> None:
    content = zip_of(files)
    assert len(content) < 50_000
    with pytest.raises(DataError, match="more than the catalogue says"):
        run(tmp_path, content, archive_of(content, unpacked=1_000_000))
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*")) <= 1_100_000
    assert run(tmp_path, content, archive_of(content, unpacked=4_600_000)) == len(files)  # a tenth is let through


def test_an_archive_without_a_folder_of_its_own_gets_one(tmp_path: Path) -> None:
    flat, nested = zip_of({"AllLabels\\one.txt": b"1"}), zip_of({"Groundtruth/AllLabels/two.txt": b"2"})
    for content in (flat, nested):
        run(tmp_path, content, archive_of(content, folder="Groundtruth"))
    assert sorted(path.name for path in (tmp_path / "out/Groundtruth/AllLabels").iterdir()) == ["one.txt", "two.txt"]


def test_members_of_other_splits_are_left_out(tmp_path: Path) -> None:
    content = zip_of({"annotations/instances_train.json": b"{}", "annotations/instances_val.json": b"{}"})
    only = (("train", "*_train.json"), ("val", "*_val.json"))
    assert run(tmp_path, content, archive_of(content, only=only), ("val",)) == 1
    assert [path.name for path in (tmp_path / "out/annotations").iterdir()] == ["instances_val.json"]
    assert run(tmp_path, content, archive_of(content, only=only)) == 2


@pytest.mark.parametrize("damage", ["cut", "noise", "flip"])
@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_a_damaged_archive_is_named(tmp_path: Path, make, damage: str) -> None:  # type: ignore[no-untyped-def]
    content = make({f"file{i}": bytes(range(256)) * 40 for i in range(10)})
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "noise":
        content = b"this is not an archive" * 100
    elif make is zip_of:
        content = content[:60] + bytes(20) + content[80:]
    else:
        content = bytes(300) + content[300:]
    with pytest.raises(DataError, match=r"toy\.archive cannot be unpacked"):
        run(tmp_path, content)

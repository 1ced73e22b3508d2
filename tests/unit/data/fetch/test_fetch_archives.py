"""Whole data sets from a server on this machine: layouts, licence, space, and taking up what was interrupted."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from loopback import QUICK, Plan, Site, archive_of, data_set, tar_of, zip_of
from loopback import site as site

from manylabel.data.fetch import DataSet, available, fetch, unpack
from manylabel.data.fetch.catalogue import CATALOGUE
from manylabel.data.fetch.manifest import ARCHIVES, BUSY, LOCK, MANIFEST, WORKSHOP, alone
from manylabel.error import DataError

TOY = tar_of({"toy/labels.csv": b"file_name,labels\n", "toy/a.jpg": bytes(20_000)})
Usage = namedtuple("Usage", "total used free")


def go(site: Site, out: Path, catalogue: dict[str, DataSet], name: str = "toy", **more: Any) -> tuple[Path, list[str]]:
    said: list[str] = []
    told = {"patience": QUICK, "say": said.append, "mirror": site.address, "catalogue": catalogue, **more}
    return fetch(name, out, **told), said


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def miniature(site: Site, name: str, contents: dict[str, dict[str, bytes]]) -> dict[str, DataSet]:
    """The catalogue's own entry, with small archives in the places of the large ones."""
    data, archives = CATALOGUE[name], []
    for archive in data.archives:
        files = contents[archive.name]
        content = zip_of(files) if archive.name.endswith(".zip") else tar_of(files)
        site.files[urlsplit(archive.url).path] = content
        checksum = archive.checksum and f"sha256:{hashlib.sha256(content).hexdigest()}"
        size = sum(map(len, files.values())) + len(content)
        archives.append(dataclasses.replace(archive, size=len(content), unpacked=size, checksum=checksum))
    return {name: dataclasses.replace(data, archives=tuple(archives))}


VOC = {
    "VOCtrainval_06-Nov-2007.tar": {
        "VOCdevkit/VOC2007/JPEGImages/000005.jpg": b"jpeg",
        "VOCdevkit/VOC2007/Annotations/000005.xml": b"<annotation/>",
        "VOCdevkit/VOC2007/ImageSets/Main/trainval.txt": b"000005\n",
    },
    "VOCtest_06-Nov-2007.tar": {
        "VOCdevkit/VOC2007/JPEGImages/000001.jpg": b"jpeg",
        "VOCdevkit/VOC2007/Annotations/000001.xml": b"<annotation/>",
        "VOCdevkit/VOC2007/ImageSets/Main/test.txt": b"000001\n",
    },
}
VOC12 = {
    "VOCtrainval_11-May-2012.tar": {
        name.replace("2007", "2012"): text for name, text in VOC["VOCtest_06-Nov-2007.tar"].items()
    }
}


def coco(year: int) -> dict[str, dict[str, bytes]]:
    return {
        f"annotations_trainval{year}.zip": {
            f"annotations/{kind}_{split}{year}.json": b"{}"
            for kind in ("instances", "captions")
            for split in ("train", "val")
        },
        f"train{year}.zip": {f"train{year}/000000000009.jpg": b"jpeg"},
        f"val{year}.zip": {f"val{year}/000000000139.jpg": b"jpeg"},
    }


NUS = {
    "Groundtruth.zip": {"AllLabels/Labels_airport.txt": b"0\n1\n", "TrainTestLabels/Labels_airport_Train.txt": b"0\n"},
    "ConceptsList.zip": {"Concepts81.txt": b"airport\n"},
    "ImageList.zip": {"ImageList/Imagelist.txt": b"actor\\0001_2124494179.jpg\n"},
    "NUS_WID_Tags.zip": {"TagList1k.txt": b"nature\n", "AllTags1k.txt": b"1 0\n"},
}
LAYOUTS = [("voc2007", VOC), ("voc2012", VOC12), ("coco2014", coco(2014)), ("coco2017", coco(2017)), ("nus-wide", NUS)]


@pytest.mark.parametrize(("name", "contents"), LAYOUTS)
def test_every_data_set_arrives_in_its_own_layout(
    site: Site, tmp_path: Path, name: str, contents: dict[str, dict[str, bytes]]
) -> None:
    catalogue = miniature(site, name, contents)
    out, said = go(site, tmp_path / "out", catalogue, name)
    data = CATALOGUE[name]
    assert all((out / path).exists() for _, path in data.expects)
    assert data.licence in said[1]
    assert data.page in said[1]
    manifest = json.loads((out / MANIFEST).read_text())
    assert (manifest["name"], manifest["complete"]) == (name, True)
    for archive in catalogue[name].archives:
        content = site.files[urlsplit(archive.url).path]
        noted = manifest["archives"][archive.name]
        assert noted["size"] == len(content)
        assert noted["sha256"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert noted["unpacked"] is True
    unpacked = [path for path in files_below(out) if not path.startswith(".")]
    assert len(unpacked) == sum(len(files) for files in contents.values())
    assert not (out / WORKSHOP).exists()
    assert not (out / BUSY).exists()


def test_nus_wide_is_trusted_on_first_use_and_says_so(site: Site, tmp_path: Path) -> None:
    catalogue = miniature(site, "nus-wide", NUS)
    out, said = go(site, tmp_path / "out", catalogue, "nus-wide")
    assert sum("nobody publishes a checksum" in text for text in said) == 4
    locked = json.loads((out / LOCK).read_text())
    assert set(locked) == set(NUS)
    shutil.rmtree(out / "Groundtruth")
    path = urlsplit(catalogue["nus-wide"].archives[0].url).path
    site.files[path] = zip_of({**NUS["Groundtruth.zip"], "AllLabels/Labels_other.txt": b"1\n"})
    with pytest.raises(DataError, match="remembered from the first download"):
        go(site, out, catalogue, "nus-wide")


def test_some_splits_only(site: Site, tmp_path: Path) -> None:
    catalogue = miniature(site, "coco2017", coco(2017))
    out, _ = go(site, tmp_path / "out", catalogue, "coco2017", splits=["val"])
    assert [path for path in files_below(out) if not path.startswith(".")] == [
        "annotations/captions_val2017.json",
        "annotations/instances_val2017.json",
        "val2017/000000000139.jpg",
    ]
    assert "/zips/train2017.zip" not in site.paths()
    with pytest.raises(DataError, match=r"holds coco2017 \(splits val\), not coco2017 \(splits all\)"):
        go(site, out, catalogue, "coco2017")
    with pytest.raises(DataError, match=r"no split 'vall'; did you mean 'val'"):
        go(site, tmp_path / "other", catalogue, "coco2017", splits=["vall"])


def test_a_second_fetch_does_nothing(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    catalogue = data_set(archive_of(TOY), expects=((None, "toy/labels.csv"),))
    out, _ = go(site, tmp_path / "out", catalogue)
    before = {path: (out / path).stat().st_mtime_ns for path in files_below(out)}
    asked = len(site.asked)
    _, said = go(site, out, catalogue)
    assert len(site.asked) == asked
    assert {path: (out / path).stat().st_mtime_ns for path in files_below(out)} == before
    assert "nothing to do" in said[0]
    (out / "toy/labels.csv").unlink()
    _, said = go(site, out, catalogue)
    assert "no longer there; fetching again" in said[0]
    assert (out / "toy/labels.csv").exists()


def test_the_licence_is_shown_before_the_first_byte(site: Site, tmp_path: Path) -> None:
    catalogue = data_set(archive_of(TOY))
    said: list[tuple[str, int]] = []
    with pytest.raises(DataError, match="answered 404"):
        go(site, tmp_path / "out", catalogue, say=lambda text: said.append((text, len(site.asked))))
    assert ("licence: everybody may do everything; read https://official.example/licence", 0) in said


def test_a_disk_that_is_too_small_is_said_with_both_figures(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/data/toy.tar"] = TOY
    archive = archive_of(TOY, unpacked=2_000_000)
    free = len(TOY) + 2_000_000 - 1
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, free))
    with pytest.raises(DataError, match=rf"needs 2\.0 MB \({free + 1:,} bytes\) .* only 2\.0 MB \({free:,} bytes\)"):
        go(site, tmp_path / "out", data_set(archive))
    assert site.asked == []
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, free + 1))
    go(site, tmp_path / "out", data_set(archive))


def test_wrong_bytes_leave_nothing_to_use(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = bytes(len(TOY))
    with pytest.raises(DataError, match="the checksum should be sha256"):
        go(site, tmp_path / "out", data_set(archive_of(TOY)))
    assert files_below(tmp_path / "out") == [MANIFEST]


def test_an_interrupted_download_is_taken_up_by_the_next_fetch(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    site.always["/data/toy.tar"] = Plan(cut_after=2_000)
    with pytest.raises(DataError, match="start again to go on from there"):
        go(site, tmp_path / "out", data_set(archive_of(TOY)))
    site.always.clear()
    kept = (tmp_path / "out" / ARCHIVES / "toy.tar.part").stat().st_size
    go(site, tmp_path / "out", data_set(archive_of(TOY)))
    assert (site.asked[-1].range, site.asked[-1].sent) == (f"bytes={kept}-", len(TOY) - kept)


def test_an_interrupted_unpacking_is_done_again(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files["/data/toy.tar"] = TOY
    catalogue = data_set(archive_of(TOY))
    write, calls = unpack._write, []

    def stopped(*args: Any) -> int:
        calls.append(args)
        if len(calls) == 2:
            args[2].write_bytes(b"half of i")
            raise KeyboardInterrupt
        return write(*args)

    monkeypatch.setattr(unpack, "_write", stopped)
    with pytest.raises(KeyboardInterrupt):
        go(site, tmp_path / "out", catalogue)
    assert json.loads((tmp_path / "out" / MANIFEST).read_text())["complete"] is False
    out, _ = go(site, tmp_path / "out", catalogue)
    assert (out / "toy/a.jpg").read_bytes() == bytes(20_000)
    assert len(site.asked) == 1  # the archive was complete and verified


def test_an_archive_that_is_done_is_not_brought_again(site: Site, tmp_path: Path) -> None:
    second = tar_of({"toy/second.txt": b"2"})
    site.files["/data/toy.tar"] = TOY
    catalogue = data_set(archive_of(TOY), archive_of(second, "/data/second.tar"))
    with pytest.raises(DataError, match="404"):
        go(site, tmp_path / "out", catalogue)
    site.files["/data/second.tar"] = second
    out, _ = go(site, tmp_path / "out", catalogue)
    assert site.paths() == ["/data/toy.tar", "/data/second.tar", "/data/second.tar"]
    assert (out / "toy/second.txt").exists()


def test_archives_are_kept_on_request_and_used_when_brought_by_hand(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "out" / ARCHIVES
    folder.mkdir(parents=True)
    (folder / "toy.tar").write_bytes(TOY)
    out, said = go(site, tmp_path / "out", data_set(archive_of(TOY)), keep_archives=True)
    assert site.asked == []
    assert (out / "toy/labels.csv").exists()
    assert (folder / "toy.tar").read_bytes() == TOY
    assert str(folder) in said[-2]
    (tmp_path / "next" / ARCHIVES).mkdir(parents=True)
    (tmp_path / "next" / ARCHIVES / "toy.tar").write_bytes(b"something else")
    with pytest.raises(DataError, match=r"toy\.tar: the checksum should be"):
        go(site, tmp_path / "next", data_set(archive_of(TOY)))


def test_a_folder_with_other_files_is_left_alone(site: Site, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(DataError, match="holds other files"):
        go(site, tmp_path / "mine", data_set(archive_of(TOY)))
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="is a file"):
        go(site, tmp_path / "file", data_set(archive_of(TOY)))
    assert files_below(tmp_path) == ["file", "mine/thesis.tex"]
    assert site.asked == []


def test_a_folder_holds_one_data_set(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    out, _ = go(site, tmp_path / "out", data_set(archive_of(TOY)))
    with pytest.raises(DataError, match=r"holds toy .* not other"):
        go(site, out, data_set(archive_of(TOY), name="other"), name="other")
    (out / MANIFEST).write_text("{broken")
    with pytest.raises(DataError, match="no valid JSON .*delete it or choose another folder"):
        go(site, out, data_set(archive_of(TOY)))


@pytest.mark.parametrize("name", [BUSY, f"{ARCHIVES}/toy.tar.part", f"{ARCHIVES}/toy.tar.part.json"])
@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "folder"])
def test_nothing_is_written_through_what_was_planted(site: Site, tmp_path: Path, name: str, kind: str) -> None:
    site.files["/data/toy.tar"] = TOY
    (tmp_path / "theirs").write_text("precious")
    place = tmp_path / "out" / name
    place.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / ("theirs" if kind == "link" else "nowhere"))
    try:
        out, _ = go(site, tmp_path / "out", data_set(archive_of(TOY)))
    except (DataError, OSError):
        assert (name, kind) == (f"{ARCHIVES}/toy.tar.part.json", "folder")
    else:
        assert (out / "toy" / "a.jpg").stat().st_size == 20_000
    assert (tmp_path / "theirs").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_what_others_keep_in_the_workshop_stays(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    workshop = tmp_path / "out" / WORKSHOP
    (workshop / "archives" / "toy.tar.part").mkdir(parents=True)
    for name in ("notes.txt", "archives/other.tar", "archives/toy.tar.part/inside"):
        (workshop / name).write_text("precious")
    out, _ = go(site, tmp_path / "out", data_set(archive_of(TOY)))
    assert (out / "toy" / "a.jpg").is_file()
    kept = [path.relative_to(workshop).as_posix() for path in sorted(workshop.rglob("*")) if path.is_file()]
    assert kept == ["archives/other.tar", "archives/toy.tar.part.aside-1/inside", "notes.txt"]


def test_a_workshop_elsewhere_is_refused(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    (tmp_path / "theirs" / "archives").mkdir(parents=True)
    (tmp_path / "theirs" / "archives" / "toy.tar.part").write_text("precious")
    for name, to in ((WORKSHOP, "theirs"), (ARCHIVES, "theirs/archives")):
        out = tmp_path / f"out of {name.count('/')}"
        (out / name).parent.mkdir(parents=True)
        (out / name).symlink_to(tmp_path / to)
        with pytest.raises(DataError, match="is a link"):
            go(site, out, data_set(archive_of(TOY)))
    assert files_below(tmp_path / "theirs") == ["archives/toy.tar.part"]


def test_two_fetches_do_not_share_a_folder(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    with alone(tmp_path / "out"), pytest.raises(DataError, match="another fetch is writing"):
        go(site, tmp_path / "out", data_set(archive_of(TOY)))
    go(site, tmp_path / "out", data_set(archive_of(TOY)))


def test_an_archive_that_is_not_what_it_was_is_noticed(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    catalogue = data_set(archive_of(TOY), expects=((None, "toy/images"),))
    with pytest.raises(DataError, match=r"toy/images is not there"):
        go(site, tmp_path / "out", catalogue)
    assert json.loads((tmp_path / "out" / MANIFEST).read_text())["complete"] is False


def test_progress_counts_the_bytes(site: Site, tmp_path: Path) -> None:
    site.files["/data/toy.tar"] = TOY
    counts: dict[str, list[int]] = {}

    @contextmanager
    def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
        counts[what] = [total, 0]

        def advance(count: int) -> None:
            counts[what][1] += count

        yield advance

    go(site, tmp_path / "out", data_set(archive_of(TOY)), progress=progress)
    assert counts["downloading toy.tar"] == [len(TOY), len(TOY)]
    assert counts["unpacking toy.tar"][1] == 20_000 + len("file_name,labels\n")


def test_names_mirrors_and_options_that_cannot_be(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no data set 'coco2107' to fetch; did you mean .*'coco2017'"):
        fetch("coco2107", tmp_path / "out")
    for mirror in ("ftp://host/x", "host/x", "file:///etc", "http://"):
        with pytest.raises(DataError, match="the mirror must be"):
            fetch("voc2007", tmp_path / "out", mirror=mirror)
    with pytest.raises(DataError, match="fetched as a whole"):
        fetch("voc2007", tmp_path / "out", labels=["dog"], mirror=site.address)
    assert not (tmp_path / "out").exists()


def test_a_mirror_may_have_a_prefix(site: Site, tmp_path: Path) -> None:
    site.files["/copies/of/data/toy.tar"] = TOY
    out, _ = go(site, tmp_path / "out", data_set(archive_of(TOY)), mirror=f"{site.address}/copies/of/")
    assert (out / "toy/labels.csv").exists()


def test_the_catalogue_is_sound() -> None:
    assert [data.name for data in available()] == [
        "voc2007",
        "voc2012",
        "coco2014",
        "coco2017",
        "nus-wide",
        "openimages",
    ]
    for data in available():
        assert data.licence
        assert data.page.startswith("http")
        assert data.size > 0
        names = [archive.name for archive in data.archives]
        assert len(set(names)) == len(names)
        for archive in data.archives:
            assert archive.exact or archive.checksum is None
            kind, _, text = (archive.checksum or "").partition(":")
            assert len(text) == {"md5": 32, "sha256": 64, "": 0}[kind]
            assert data.by_label or archive.unpacked > 0
    assert all(
        archive.checksum
        for name in ("voc2007", "voc2012", "coco2014", "coco2017")
        for archive in CATALOGUE[name].archives
    )

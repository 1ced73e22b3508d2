"""Open Images by label and count, from a small copy of the official files on this machine."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loopback import QUICK, Plan, Site
from loopback import site as site
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.decode import decode
from manylabel.data.fetch import fetch
from manylabel.data.fetch.catalogue import CLASS_DESCRIPTIONS, LABEL_FILES, TRAINABLE
from manylabel.data.fetch.choice import candidates, find_labels, read_classes, rows_of
from manylabel.data.fetch.manifest import MANIFEST, WORKSHOP
from manylabel.data.read import read_table
from manylabel.error import DataError
from manylabel.labels import UNKNOWN

DOG, CAT, OWL, TWIN1, TWIN2 = "/m/0bt9lr", "/m/01yrx", "/m/09d5_", "/m/0a", "/m/0b"
CLASSES = {DOG: "Dog", CAT: "Cat", OWL: "Owl", TWIN1: "Bank", TWIN2: "Bank", "/m/0c": "Tree, evergreen"}
HEADER = "ImageID,Source,LabelName,Confidence"
Usage = namedtuple("Usage", "total used free")


def identifier(number: int) -> str:
    return f"{number:016x}"


def jpeg(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 255, (8, 8, 3)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG")
    return buffer.getvalue()


def rows(start: int, images: int) -> list[str]:
    """Even images show a dog, every third a cat; odd ones are verified not to show a dog."""
    lines = []
    for number in range(start, start + images):
        lines.append(f"{identifier(number)},verification,{DOG},{1 - number % 2}")
        if number % 3 == 0:
            lines.append(f"{identifier(number)},crowdsource-verification,{CAT},1")
        if number == start:
            lines.append(f"{identifier(number)},verification,{OWL},0")
    return lines


STARTS = {"train": 0, "validation": 1000, "test": 2000}


@pytest.fixture
def small(site: Site) -> Site:
    """60 images in each split."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([("LabelName", "DisplayName"), *CLASSES.items()])
    site.files[f"/openimages/v7/{CLASS_DESCRIPTIONS}"] = buffer.getvalue().encode()
    site.files[f"/openimages/v7/{TRAINABLE}"] = f"{DOG}\n{CAT}\n".encode()
    for split, start in STARTS.items():
        text = "\n".join([HEADER, *rows(start, 60)]) + "\n"
        site.files[f"/openimages/v7/{LABEL_FILES[split]}"] = text.encode()
        for number in range(start, start + 60):
            site.files[f"/{split}/{identifier(number)}.jpg"] = jpeg(number)
    return site


def go(site: Site, out: Path, **more: Any) -> tuple[Path, list[str]]:
    said: list[str] = []
    told: dict[str, Any] = {
        "labels": ["Dog"],
        "count": 5,
        "patience": QUICK,
        "mirror": site.address,
        "say": said.append,
    }
    return fetch("openimages", out, **{**told, **more}), said


def images_in(out: Path, split: str) -> list[str]:
    return sorted(path.stem for path in (out / split).iterdir())


def read_rows(out: Path, split: str) -> list[list[str]]:
    with open(out / LABEL_FILES[split], newline="") as file:
        return list(csv.reader(file))


def test_a_small_set_of_the_same_form(small: Site, tmp_path: Path) -> None:
    out, said = go(small, tmp_path / "out", labels=["Dog", "Cat"], count=5)
    for split in ("train", "validation"):
        head, *body = read_rows(out, split)
        assert ",".join(head) == HEADER
        images = images_in(out, split)
        assert {row[0] for row in body} == set(images)
        for label in (DOG, CAT):
            assert sum(row[2] == label and row[3] == "1" for row in body) >= 5
        official = small.files[f"/openimages/v7/{LABEL_FILES[split]}"].decode().splitlines()
        kept = [row for row in official[1:] if row[:16] in images and row.split(",")[2] in (DOG, CAT)]
        assert [",".join(row) for row in body] == kept  # all rows of these images, negatives too, as they stood
        assert any(row[3] == "0" for row in body)
        for image in images:
            assert decode(out / split / f"{image}.jpg").size == (8, 8)
    assert read_classes(out / CLASS_DESCRIPTIONS) == {DOG: "Dog", CAT: "Cat"}
    assert not (out / "test").exists()
    assert "CC BY 4.0" in said[1]
    assert json.loads((out / MANIFEST).read_text())["images"]["train"] == {"Dog": 5, "Cat": 5}
    assert not (out / WORKSHOP).exists()


@pytest.mark.parametrize("keep_archives", [False, True])
def test_our_reader_takes_what_was_fetched(small: Site, tmp_path: Path, keep_archives: bool) -> None:
    out, _ = go(small, tmp_path / "out", labels=["Dog", "Cat"], count=5, keep_archives=keep_archives)
    table = read_table(DataConfig(path=str(out)))
    assert sorted(table.labels.names) == ["Cat", "Dog"]
    assert sorted(Path(key).stem for key in table.keys) == sorted(
        images_in(out, "train") + images_in(out, "validation")
    )
    dog, cat = (table.matrix[:, table.labels.names.index(name)] for name in ("Dog", "Cat"))
    numbers = [int(Path(key).stem, 16) for key in table.keys]
    assert [int(value) for value in dog] == [1 - number % 2 for number in numbers]
    assert [int(value) for value in cat] == [1 if number % 3 == 0 else UNKNOWN for number in numbers]
    assert table.split is not None
    assert set(table.split) == {"train", "val"}


def test_only_images_verified_to_show_the_label_are_chosen(small: Site, tmp_path: Path) -> None:
    out, _ = go(small, tmp_path / "out", splits=["validation"], count=12)
    assert len(images_in(out, "validation")) == 12
    assert all(int(image, 16) % 2 == 0 for image in images_in(out, "validation"))


def test_the_choice_is_the_seeds(small: Site, tmp_path: Path) -> None:
    chosen = [
        images_in(go(small, tmp_path / str(i), splits=["test"], seed=seed)[0], "test")
        for i, seed in enumerate((1, 1, 2))
    ]
    assert chosen[0] == chosen[1] != chosen[2]
    more = images_in(go(small, tmp_path / "more", splits=["test"], seed=1, count=9)[0], "test")
    assert set(chosen[0]) < set(more)


def test_rows_of_other_labels_on_request(small: Site, tmp_path: Path) -> None:
    out, _ = go(small, tmp_path / "out", splits=["test"], labels=["Cat"], count=20, other_labels=True)
    assert {row[2] for row in read_rows(out, "test")[1:]} >= {DOG, CAT}
    assert set(read_classes(out / CLASS_DESCRIPTIONS)) == {row[2] for row in read_rows(out, "test")[1:]}


def test_names_of_labels(small: Site, tmp_path: Path) -> None:
    assert list(find_labels(["dog", CAT, "Dog"], CLASSES)) == [DOG, CAT]
    with pytest.raises(DataError, match=r"no label 'Dgo'; did you mean 'Dog'"):
        go(small, tmp_path / "out", labels=["Dgo"])
    with pytest.raises(DataError, match=r"'Bank' is the name of several labels.*/m/0a, /m/0b"):
        go(small, tmp_path / "out", labels=["Bank"])
    assert not any("imagelabels" in path for path in small.paths())
    out, _ = go(small, tmp_path / "out", splits=["test"])  # the folder is not spoilt by the mistake
    assert len(images_in(out, "test")) == 5


def test_a_label_that_is_not_trainable_is_said(small: Site, tmp_path: Path) -> None:
    path = f"/openimages/v7/{LABEL_FILES['test']}"
    small.files[path] += f"{identifier(2000)},verification,{OWL},1\n".encode()
    out, said = go(small, tmp_path / "out", labels=["Owl"], splits=["test"])
    assert any("'Owl' is not one of Open Images' trainable labels" in text for text in said)
    assert any("test has only 1 images of 'Owl' that can be had, not 5" in text for text in said)
    assert images_in(out, "test") == [identifier(2000)]


def test_a_label_without_any_image(small: Site, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no image of 'Owl' can be had"):
        go(small, tmp_path / "out", labels=["Dog", "Owl"], splits=["test"])


@pytest.mark.parametrize("fault", ["gone", "broken", "page", "forbidden"])
def test_images_that_cannot_be_had_are_replaced_and_said(small: Site, tmp_path: Path, fault: str) -> None:
    first, _ = go(small, tmp_path / "first", splits=["test"])
    bad = images_in(first, "test")[:2]
    for image in bad:
        path = f"/test/{image}.jpg"
        if fault == "gone":
            del small.files[path]
        elif fault == "broken":
            small.files[path] = small.files[path][:100]
        elif fault == "page":
            small.files[path] = b"<!doctype html><p>log in"
        else:
            small.always[path] = Plan(status=403)
    out, said = go(small, tmp_path / "second", splits=["test"])
    assert len(images_in(out, "test")) == 5
    assert set(images_in(first, "test")) - set(bad) < set(images_in(out, "test"))
    assert not set(bad) & set(images_in(out, "test"))
    assert {row[0] for row in read_rows(out, "test")[1:]} == set(images_in(out, "test"))
    assert all(any(f"test image {image} is left out" in text for text in said) for image in bad)


def test_a_server_that_goes_away_is_not_taken_for_missing_images(small: Site, tmp_path: Path) -> None:
    for number in range(2000, 2060):
        small.always[f"/test/{identifier(number)}.jpg"] = Plan(status=503)
    with pytest.raises(DataError, match="answered 503"):
        go(small, tmp_path / "out", splits=["test"])
    small.always.clear()
    out, _ = go(small, tmp_path / "out", splits=["test"])
    assert len(images_in(out, "test")) == 5


def test_images_and_label_files_that_are_there_are_not_brought_again(small: Site, tmp_path: Path) -> None:
    good, _ = go(small, tmp_path / "good", splits=["test"])
    slow = images_in(good, "test")[-1]
    small.asked.clear()
    small.always[f"/test/{slow}.jpg"] = Plan(status=503)
    with pytest.raises(DataError, match="answered 503"):
        go(small, tmp_path / "out", splits=["test"])
    had = {path for path in small.paths() if (tmp_path / "out" / path.lstrip("/")).exists()}
    small.always.clear()
    small.asked.clear()
    out, _ = go(small, tmp_path / "out", splits=["test"])
    assert images_in(out, "test") == images_in(good, "test")
    assert f"/test/{slow}.jpg" in small.paths()
    assert not had & set(small.paths())
    assert not [path for path in small.paths() if "/v7/" in path]


def test_a_second_fetch_does_nothing(small: Site, tmp_path: Path) -> None:
    out, _ = go(small, tmp_path / "out", splits=["test"])
    small.asked.clear()
    assert "nothing to do" in go(small, out, splits=["test"])[1][0]
    assert small.asked == []
    with pytest.raises(DataError, match="holds openimages"):
        go(small, out, splits=["test"], count=6)


def test_ctrl_c_stops_the_pool_and_the_next_fetch_goes_on(small: Site, tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if "left out" in text:
            raise KeyboardInterrupt

    gone = [path for path in small.files if path.startswith("/test/")][::2]
    kept = {path: small.files.pop(path) for path in gone}
    with pytest.raises(KeyboardInterrupt):
        go(small, tmp_path / "out", splits=["test"], say=interrupt)
    small.files.update(kept)
    out, _ = go(small, tmp_path / "out", splits=["test"])
    assert len(images_in(out, "test")) == 5


def test_space_and_options(small: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="say which labels"):
        go(small, tmp_path / "out", labels=[])
    with pytest.raises(DataError, match="at least 1, not 0"):
        go(small, tmp_path / "out", count=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, 10**6))
    with pytest.raises(DataError, match=r"with up to 10 images needs 2\.8 GB .* only 1\.0 MB"):
        go(small, tmp_path / "out")
    assert small.asked == []


def label_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    return path


def quiet(count: int) -> None:
    pass


def test_the_order_of_the_file_does_not_matter(tmp_path: Path) -> None:
    lines = [f"{identifier(n)},verification,{DOG},1" for n in range(500)]
    first = candidates(label_file(tmp_path, "\n".join([HEADER, *lines])), [DOG], 50, 0, quiet)
    turned = candidates(label_file(tmp_path, "\n".join([HEADER, *lines[::-1], *lines])), [DOG], 50, 0, quiet)
    assert first == turned
    assert len(set(first[DOG])) == 50
    assert candidates(label_file(tmp_path, "\n".join([HEADER, *lines])), [DOG], 500, 0, quiet)[DOG][:50] == first[DOG]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("ImageID,LabelName\n", "does not begin with"),
        ("", "does not begin with"),
        (f"{HEADER}\na,b,{DOG},1\na,b,{DOG}\n", "row 3: not the four fields"),
        (f"{HEADER}\n../../evil,verification,{DOG},1\n", "cannot be a file's name"),
    ],
)
def test_label_files_that_are_not_what_they_should_be(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(DataError, match=match):
        candidates(label_file(tmp_path, text), [DOG], 5, 0, quiet)


def test_reading_is_counted_in_bytes(tmp_path: Path) -> None:
    path = label_file(tmp_path, "\n".join([HEADER, *rows(0, 100)]) + "\n")
    steps: list[int] = []
    assert len(list(rows_of(path, {identifier(3)}, None, steps.append))) == 2
    assert sum(steps) == path.stat().st_size


def test_class_descriptions_without_a_header_and_with_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "classes.csv"
    path.write_text(f'{DOG},Dog\n/m/0c,"Tree, evergreen"\n')
    assert read_classes(path) == {DOG: "Dog", "/m/0c": "Tree, evergreen"}
    path.write_text(f"{DOG},Dog\n{CAT}\n")
    with pytest.raises(DataError, match="row 2: 1 fields"):
        read_classes(path)

"""manylabel data …: as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from command import TINY, manylabel, settings


def _parts(path: Path) -> dict[str, str]:
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][0] == "file_name"
    return dict(rows[1:])


def test_split_then_train_on_it(photos: Path, tmp_path: Path) -> None:
    file = tmp_path / "split.csv"
    made = manylabel("data", "split", photos, "--val", "0.25", "--test", "0.25", "--out", file)
    assert made.returncode == 0, made.stderr
    assert f"manylabel train {photos} --set data.split_file={file}" in made.stdout
    sizes = list(_parts(file).values())
    assert (sizes.count("train"), sizes.count("val"), sizes.count("test")) == (24, 12, 12)
    again = manylabel("data", "split", photos, "--out", file)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    trained = manylabel(
        "train", photos, "--out", tmp_path / "run", *settings(*TINY, "train.epochs=1", f"data.split_file={file}")
    )
    assert trained.returncode == 0, trained.stderr
    assert "48 images (24 train, 12 val, 12 test)" in trained.stderr


def test_folds_keep_groups_and_duplicates_together(photos: Path, tmp_path: Path) -> None:
    images = photos / "images"
    for i in range(6):  # copies under other names, with the same labels
        (images / f"copy{i}.jpg").write_bytes((images / f"photo{i:03d}.jpg").read_bytes())
    lines = (photos / "labels.csv").read_text().splitlines()
    copies = [lines[1 + i].replace(f"photo{i:03d}", f"copy{i}") for i in range(6)]
    grouped = [f"{line},{'' if i > 9 else 'walk'}" for i, line in enumerate([*lines[1:], *copies])]
    (photos / "labels.csv").write_text("\n".join([f"{lines[0]},group", *grouped]))
    made = manylabel("data", "split", photos, "--folds", "3", "--seed", "4", "--out", tmp_path / "folds.csv")
    assert made.returncode == 0, made.stderr
    fold = _parts(tmp_path / "folds.csv")
    assert all(fold[f"copy{i}.jpg"] == fold[f"photo{i:03d}.jpg"] for i in range(6))
    assert len({fold[f"photo{i:03d}.jpg"] for i in range(10)}) == 1
    assert set(fold.values()) == {"0", "1", "2"}


def test_data_with_train_and_test_only(photos: Path, tmp_path: Path) -> None:
    lines = (photos / "labels.csv").read_text().splitlines()
    rows = [f"{line},{'test' if i % 6 == 0 else 'train'}" for i, line in enumerate(lines[1:])]
    (photos / "labels.csv").write_text("\n".join([f"{lines[0]},split", *rows]))
    out = tmp_path / "run"
    trained = manylabel("train", photos, "--out", out, *settings(*TINY, "train.epochs=1"))
    assert trained.returncode == 0, trained.stderr
    assert "no split 'val', so of the training images 20% are held out" in trained.stderr
    assert "48 images (32 train, 8 val, 8 test)" in trained.stderr
    for part, images in (("val", 8), ("test", 8), ("train", 32)):
        judged = manylabel("evaluate", out, "--split", part)
        assert judged.returncode == 0, judged.stderr
        assert f"{part}, {images} images" in " ".join(judged.stdout.split())


def test_predictions_as_files(trained: Path, photos: Path, tmp_path: Path) -> None:
    (photos / "images" / "broken.jpg").write_bytes(b"")
    files = ("--csv", tmp_path / "tags.csv", "--label-studio", tmp_path / "ls" / "tasks.json")
    said = manylabel("predict", trained, photos / "images", *files)
    assert said.returncode == 0, said.stderr
    assert "broken.jpg: cannot be read" in said.stdout
    with open(tmp_path / "tags.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 49
    assert [row["error"] for row in rows if row["error"]] == ["empty file (0 bytes)"]
    assert all(len(row["labels"].split("|")) == len(row["scores"].split("|")) for row in rows)
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text())
    assert len(tasks) == 48
    assert tasks[0]["predictions"][0]["model_version"] == "manylabel"
    (photos / "images" / "broken.jpg").unlink()
    again = manylabel("data", "check", tmp_path / "ls", "--set", f"data.images={photos / 'images'}")
    assert "read as Label Studio" in again.stdout


def test_no_output_replaces_the_data(photos: Path, tmp_path: Path) -> None:
    labels = photos / "labels.csv"
    photo = photos / "images" / "photo000.jpg"
    before = {path: path.read_bytes() for path in (labels, photo)}
    for arguments in (
        ("data", "check", photos, "--json", labels),
        ("data", "check", photos, "--html", photo),
        ("data", "split", photos, "--out", labels, "--overwrite"),
        ("data", "convert", photos, labels, "--to", "csv", "--overwrite"),
        ("predict", tmp_path, photos, "--csv", labels),
    ):
        answer = manylabel(*arguments)
        assert answer.returncode == 2, arguments
        assert "choose another" in answer.stderr
    assert before == {path: path.read_bytes() for path in (labels, photo)}
    found = tmp_path / "found.json"
    assert manylabel("data", "check", photos, "--json", found).returncode == 0
    assert manylabel("data", "check", photos, "--json", found).returncode == 2
    assert manylabel("data", "check", photos, "--json", found, "--overwrite").returncode == 0


def test_the_format_can_be_forced_in_training(photos: Path, tmp_path: Path) -> None:
    arguments = ("--format", "csv", "--out", tmp_path / "run", *settings(*TINY, "train.epochs=1"))
    trained = manylabel("train", photos, *arguments)
    assert trained.returncode == 0, trained.stderr
    judged = manylabel("evaluate", tmp_path / "run", "--format", "csv")
    assert judged.returncode == 0, judged.stderr


def test_convert_says_what_it_did(photos: Path, tmp_path: Path) -> None:
    done = manylabel("data", "convert", photos, tmp_path / "coco", "--to", "coco", "--images", "copy")
    assert done.returncode == 0, done.stderr
    assert "48 images and 4 labels are in" in done.stdout
    checked = manylabel("data", "check", tmp_path / "coco")
    assert checked.returncode == 0, checked.stderr
    assert "read as COCO" in checked.stdout
    wrong = manylabel("data", "convert", photos, tmp_path / "x", "--to", "cocoa")
    assert wrong.returncode == 2
    assert "did you mean 'coco'" in wrong.stderr


def test_formats_can_be_listed_and_forced(photos: Path) -> None:
    listed = manylabel("data", "formats").stdout
    for name in ("csv", "coco", "voc", "open-images", "label-studio", "webdataset"):
        assert f"\n{name} " in f"\n{listed}"
    wrong = manylabel("data", "check", photos, "--format", "voc")
    assert wrong.returncode == 2
    assert "error:" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    typo = manylabel("data", "check", photos, "--format", "csb")
    assert "did you mean 'csv'" in typo.stderr


def test_check_writes_a_page_and_findings(photos: Path, tmp_path: Path) -> None:
    page, findings = tmp_path / "page.html", tmp_path / "findings.json"
    checked = manylabel("data", "check", photos, "--html", page, "--json", findings)
    assert checked.returncode == 0, checked.stderr
    assert "trainable" in checked.stdout
    assert "photos" in page.read_text(encoding="utf-8")
    assert json.loads(findings.read_text())["images"] == 48


def test_what_can_be_fetched_is_listed() -> None:
    listed = manylabel("data", "fetch").stdout
    for name in ("voc2007", "voc2012", "coco2014", "coco2017", "nus-wide", "openimages"):
        assert name in listed
    typo = manylabel("data", "fetch", "coco2071")
    assert typo.returncode == 2
    assert "did you mean 'coco2017'" in typo.stderr


@pytest.mark.parametrize("command", ["check", "split", "convert", "fetch", "formats"])
def test_every_command_has_help(command: str) -> None:
    answer = manylabel("data", command, "--help")
    assert answer.returncode == 0
    assert "Usage" in answer.stdout

"""The product as a user meets it: the commands, their output, their errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import TINY, manylabel, real_manylabel, settings


def test_from_photos_to_a_judged_classifier(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained = real_manylabel("train", photos, "--out", out, *settings(*TINY, "train.epochs=3"))
    assert trained.returncode == 0, trained.stderr
    assert "mAP (not interpolated)" in trained.stdout
    assert "mAP (VOC-interpolated)" in trained.stdout
    assert "labels separated by '|'" in trained.stderr
    assert "no split column" in trained.stderr
    for name in (
        "config.yaml",
        "metrics.jsonl",
        "results.json",
        "report.html",
        "split.csv",
        "bundle/weights.safetensors",
    ):
        assert (out / name).is_file(), name

    judged = manylabel("evaluate", out, "--data", photos, "--split", "val", "--json", tmp_path / "val.json")
    assert judged.returncode == 0, judged.stderr
    val, own = json.loads((tmp_path / "val.json").read_text()), json.loads((out / "results.json").read_text())
    assert val["mAP"] == pytest.approx(own["mAP"], abs=1e-3)  # pixels and cached features agree
    assert {"mAP", "mAP_interpolated", "CP", "CR", "CF1", "OP", "OR", "OF1", "top3", "labels_scored"} <= set(val)
    assert {"name", "ap", "support", "threshold", "precision", "recall"} <= set(val["labels"][0])

    image = photos / "images" / "photo000.jpg"
    said = real_manylabel("predict", out, image, "--json")
    (answer,) = json.loads(said.stdout)
    scores = [entry["score"] for entry in answer["labels"]]
    assert scores == sorted(scores, reverse=True)
    assert set(answer["labels"][0]) == {"label", "score", "threshold", "above"}
    assert len(scores) == 4
    plain = manylabel("predict", out / "bundle", photos / "images")
    assert plain.stdout.count("\n") == 48

    (out / "report.html").unlink()
    assert manylabel("report", out).returncode == 0
    assert "photo" in (out / "report.html").read_text(encoding="utf-8")


def test_predicting_some_broken_images(trained: Path, photos: Path, tmp_path: Path) -> None:
    out = trained
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"")
    both = manylabel("predict", out, broken, photos / "images" / "photo000.jpg")
    assert both.returncode == 0
    assert "broken.jpg: cannot be read: empty file" in both.stdout
    assert manylabel("predict", out, broken).returncode == 1
    gone = manylabel("predict", out, tmp_path / "gone.jpg")
    assert gone.returncode == 2
    assert "gone.jpg does not exist" in gone.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file_name,labels\na.jpg,x\ngone.jpg,x\n", "row 3: 'gone.jpg' is not there"),
        ("file_name,labels\na.jpg,x\nb.jpg,x\na.jpg,x\n", "row 4: 'a.jpg' already stands in row 2"),
        ("file_name,labels,camera\na.jpg,x,nikon\n", "row 1: column 'camera'"),
        ("file_name,labels\na.jpg,<script>\n", "row 2: label '<script>'"),
        ("", "labels.csv is empty"),
    ],
)
def test_bad_tables_are_answered_with_file_and_row(make_csv: Callable[[str], Path], text: str, message: str) -> None:
    path = make_csv(text)
    before = path.read_bytes()
    answer = manylabel("train", path, "--out", path.parent / "run", *settings(*TINY))
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "labels.csv" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert path.read_bytes() == before
    assert not (path.parent / "run").exists()


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    answer = manylabel("train", tmp_path, "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert "is a folder without a label file" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trian",), "did you mean 'train'"),
        (("train", "scenes", "--head", "liner"), "did you mean 'linear'"),
        (("train", "scenes", "--backbone", "efficientnet_lit0"), "did you mean 'efficientnet_lite0'"),
        (("train", "scenes", "--set", "trian.epochs=3"), "did you mean 'train'"),
        (("train", "scenes", "--recipe", "dmeo"), "did you mean 'demo'"),
        (("train", "scenes", "--frozen", "--full"), "exclude each other"),
        (("train",), "no data given"),
        (("train", "--resume", "--overwrite"), "exclude each other"),
        (("bench", "metric"), "did you mean 'metrics'"),
        (("evaluate", "nowhere"), "nowhere does not exist"),
        (("report", "."), "results.json"),
    ],
)
def test_typos_are_answered_with_what_was_meant(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    answer = manylabel(*arguments, cwd=tmp_path)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "option", "setting"),
    [
        ("train scenes --epochs 3 --set train.epochs=1", "--epochs", "train.epochs"),
        ("train scenes --seed 3 --set train.seed=1", "--seed", "train.seed"),
        ("train scenes --head hsq --set head.name=linear", "--head", "head.name"),
        ("train scenes --head hsq --set head=linear", "--head", "head"),
        ("train scenes --backbone efficientnet_lite1 --set backbone=none", "--backbone", "backbone"),
        ("train scenes --full --set backbone.freeze=frozen", "--full", "backbone.freeze"),
        ("train scenes --kind single_label --set kind=multi_label", "--kind", "kind"),
        ("train scenes --format csv --set data.format=coco", "--format", "data.format"),
        ("train scenes --set data.path=photos", "the argument DATA", "data.path"),
        ("evaluate nowhere --format csv --set data.format=coco", "--format", "data.format"),
        ("data check scenes --format csv --set data.format=coco", "--format", "data.format"),
    ],
)
def test_an_option_and_a_setting_that_say_the_same_are_refused(
    arguments: str, option: str, setting: str, tmp_path: Path
) -> None:
    answer = manylabel(*arguments.split(), cwd=tmp_path)
    assert answer.returncode == 2
    assert f"{option} and --set {setting} say the same" in answer.stderr.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_what_the_memory_cannot_hold_is_said(tmp_path: Path) -> None:
    command = ["train", "scenes", *settings("head.name=ml_decoder", "head.dim=1000000000000", "backbone.weights=none")]
    answer = manylabel(*command, "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert "the memory does not suffice" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_process_of_its_own_answers_as_this_one_does(tmp_path: Path) -> None:
    """What the other tests ask in this process is what a user gets from a new one."""
    for arguments in (("evaluate", "nowhere"), ("heads",), ("train", "scenes", "--head", "liner")):
        assert real_manylabel(*arguments, cwd=tmp_path) == manylabel(*arguments, cwd=tmp_path)


def test_help_is_quick_and_does_not_import_torch() -> None:
    code = "import sys; import manylabel.cli; print(sorted({'torch', 'timm', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    seconds = []
    for _ in range(5):
        before = os.times()
        answer = real_manylabel("--help")
        after = os.times()  # of the processor: how busy the machine is says nothing about us
        seconds.append(sum(after[2:4]) - sum(before[2:4]))
        assert "manylabel train photos/ --out runs/mine" in answer.stdout
    assert min(seconds) < 0.5


def test_listings() -> None:
    assert "linear: l = W z + b" in manylabel("heads").stdout
    assert "head.dropout" in manylabel("heads").stdout
    assert "efficientnet_lite0" in manylabel("backbones").stdout
    assert "vit_tiny_patch16_224" in manylabel("backbones", "vit_tiny*").stdout
    assert "demo" in manylabel("recipes").stdout
    assert "head.stages = 3" in manylabel("detectors").stdout
    assert "train.epochs = 12" in manylabel("settings", "train.").stdout
    assert "did you mean 'train.ema'" in manylabel("settings", "traim").stderr
    assert manylabel("--version").stdout.startswith("manylabel ")


def test_data_check_says_whether_it_is_trainable(photos: Path, tmp_path: Path) -> None:
    good = manylabel("data", "check", photos, "--json", tmp_path / "check.json")
    assert good.returncode == 0, good.stderr
    assert json.loads((tmp_path / "check.json").read_text())["trainable"] is True
    for i in range(5):
        (photos / "images" / f"photo{i:03d}.jpg").write_bytes(b"<html>")
    bad = manylabel("data", "check", photos)
    assert bad.returncode == 1
    assert "5 images (10.4%) cannot be read" in bad.stdout


def test_bad_images_are_listed_and_too_many_stop_the_run(photos: Path, tmp_path: Path) -> None:
    (photos / "images" / "photo010.jpg").write_bytes(b"<html>gone</html>")
    few = manylabel(
        "train", photos, "--out", tmp_path / "few", *settings(*TINY, "train.epochs=1", "data.max_bad_share=0.05")
    )
    assert few.returncode == 0, few.stderr
    listed = (tmp_path / "few" / "bad_images.csv").read_text().splitlines()
    assert len(listed) == 2
    assert listed[1].startswith("photo010.jpg,")
    many = manylabel("train", photos, "--out", tmp_path / "many", *settings(*TINY, "train.epochs=1"))
    assert many.returncode == 2
    assert "1 of 48 images cannot be read, over the limit of 1.0%" in many.stderr


def test_tensorboard_is_written_on_request(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    answer = manylabel(
        "train", photos, "--out", out, *settings(*TINY, "train.epochs=1", "train.trackers=[tensorboard]")
    )
    assert answer.returncode == 0, answer.stderr
    assert list(out.rglob("events.out.tfevents*"))
    missing = manylabel("train", photos, "--out", tmp_path / "x", *settings(*TINY, "train.trackers=[comet]"))
    assert "tensorboard, mlflow, wandb" in missing.stderr


def test_two_values_for_one_setting_are_refused(photos: Path, tmp_path: Path) -> None:
    """And the same one twice says the same twice."""
    words = ("train", photos, "--out", tmp_path / "run", *settings(*TINY, "train.epochs=1"))
    answer = manylabel(*words, "--set", "train.epochs= 1 ", "--set", "train.epochs=4")
    assert answer.returncode == 2
    assert "--set train.epochs was given twice, as '1' and '4'; choose one" in answer.stderr
    assert not (tmp_path / "run").exists()
    answer = manylabel("bench", "cost", "--set", "head.groups=2", "--set", "head.groups=3")
    assert answer.returncode == 2
    assert "head.groups was given twice" in answer.stderr

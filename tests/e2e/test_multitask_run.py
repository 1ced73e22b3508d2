"""Several tasks in one model, from data to predictions: the files, the figures, stopping in the middle, the errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import manylabel
from PIL import Image
from small_tasks import SMALL

from manylabel.backbone.stem import Stem
from manylabel.config import load_recipe
from manylabel.data.scenes import scene_image
from manylabel.error import BundleError, ConfigError, DataError
from manylabel.multitask.judging import evaluate_tasks
from manylabel.multitask.loop import MultiTaskTrainer
from manylabel.multitask.predict import FoundObjects, TaskPredictor, overlay
from manylabel.multitask.run import train_tasks
from manylabel.multitask.work import TaskWork
from manylabel.stop import Stopped
from manylabel.storage.atomic import sha256, write_json


def _with(**sections: dict[str, Any]) -> dict[str, Any]:
    return {**SMALL, **{name: {**SMALL.get(name, {}), **values} for name, values in sections.items()}}


def _weights(folder: Path) -> str:
    return sha256(folder / "bundle" / "weights.safetensors")


def _history(folder: Path) -> list[dict[str, Any]]:
    """But for the time it took."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several") / "run"
    train_tasks(folder, recipe=_with(train={"judge_every": 4}))
    return folder


def test_what_a_run_leaves(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    assert set(results["tasks"]) == {"labels", "objects"}
    assert results["tasks"]["labels"]["goal"] == "mAP"
    assert {"AP", "AP50", "mask AP"} <= set(results["tasks"]["objects"]["figures"])
    assert results["tasks"]["labels"]["active_parameters"] < results["model"]["parameters"]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows if "held_out" in row] == [2, 4, 6, 8]
    assert [row["epoch"] for row in rows if "judged" in row] == [4]
    assert {"layers", "by_label", "circle"} <= set(results["routing"]["objects"])
    assert np.sum(results["routing"]["labels"]["layers"]) == pytest.approx(1, abs=1e-3)
    assert results["settling"]["steps"][-1] == 8
    assert all(row["conflict"].keys() == {"labels, objects"} for row in rows if "conflict" in row)
    assert all(length > 0 for row in rows for length in row.get("pull", {"": 1}).values())
    assert len(list((run / "routing").glob("patches-*.png"))) == 5  # three of a batch of four, and a batch of two
    page = (run / "report.html").read_text()
    assert "objects" in page
    assert "http" not in page.split("<body>")[1]


def test_a_bundle_says_what_the_run_said(run: Path) -> None:
    again = evaluate_tasks(run)
    told = json.loads((run / "results.json").read_text())
    for name in ("labels", "objects"):
        for figure, value in told["tasks"][name]["figures"].items():
            assert again["tasks"][name]["figures"][figure] == (
                None if value is None else pytest.approx(value, abs=0.01)
            )
        assert again["tasks"][name]["experts"] == told["tasks"][name]["experts"]


def test_other_images_than_val_are_judged(run: Path, tmp_path: Path) -> None:
    told = manylabel("evaluate", run, "--task", "labels", "--split", "train", "--report", tmp_path / "train.html")
    assert told.returncode == 0, told.stderr
    assert "train" in told.stdout
    assert (tmp_path / "train.html").read_text().startswith("<!doctype html")
    again = evaluate_tasks(run, task="labels", split="train")["tasks"]["labels"]
    assert (again["split"], again["images"]) == ("train", SMALL["tasks"]["labels"]["data"]["scenes"]["train"])
    slip = manylabel("evaluate", run, "--split", "tain")
    assert slip.returncode == 2
    assert "did you mean 'train'" in slip.stderr


def test_a_bundle_knows_its_run(run: Path) -> None:
    found = evaluate_tasks(run / "bundle", task="labels", split="train")["tasks"]["labels"]
    assert found["images"] == SMALL["tasks"]["labels"]["data"]["scenes"]["train"]
    assert any("trained on these images" in note for note in found["notes"])


def test_half_a_judgement_is_none(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal while images are judged: no figures of some of them."""
    kept = TaskWork.judge

    def judge(self: TaskWork, model: Any, device: Any, advance: Any = None) -> Any:
        self.stop.signal = 15
        return kept(self, model, device, advance)

    monkeypatch.setattr(TaskWork, "judge", judge)
    with pytest.raises(Stopped, match="nothing was written"):
        evaluate_tasks(run, task="objects")


def test_what_others_left_in_a_folder_stays(tmp_path: Path) -> None:
    for name in ("figures/mine.png", "tasks/todo.txt", "report.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    quick = ["train.steps=1", "tasks.objects=none"]
    with pytest.raises(ConfigError, match=r"holds report\.html, and is not a run"):
        train_tasks(tmp_path, recipe=SMALL, settings=quick)
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").unlink()
    train_tasks(tmp_path, recipe=SMALL, settings=quick)
    assert (tmp_path / "figures" / "mine.png").read_text() == "mine"
    assert (tmp_path / "tasks" / "todo.txt").read_text() == "mine"
    with pytest.raises(ConfigError, match="leave data, --seed out"):
        train_tasks(tmp_path, resume=True, data={"path": "elsewhere"}, seed=7)
    (tmp_path / "labels.csv").write_text("file_name,labels\n")
    settings = [f"tasks.labels.data.path={tmp_path / 'labels.csv'}"]
    with pytest.raises(ConfigError, match="is the folder of the data"):
        train_tasks(tmp_path, recipe=SMALL, settings=settings, overwrite=True)


def test_results_and_bundles_of_other_versions_are_told(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "run")
    results = json.loads((other / "results.json").read_text())
    (other / "results.json").write_text(json.dumps(results | {"schema": 1}))
    for command in (("report", other), ("compare", run, other, "--out", tmp_path / "both")):
        told = manylabel(*command)
        assert told.returncode == 2
        assert "another version of manylabel" in told.stderr
        assert "Traceback" not in told.stderr
    tasks = json.loads((other / "bundle" / "tasks.json").read_text())
    write_json(other / "bundle" / "tasks.json", tasks | {"format": 1})
    sums = json.loads((other / "bundle" / "checksums.json").read_text())
    sums["sha256"]["tasks.json"] = sha256(other / "bundle" / "tasks.json")
    write_json(other / "bundle" / "checksums.json", sums)
    with pytest.raises(BundleError, match="made by another one; train it again"):
        TaskPredictor.load(other)


def test_predictions_of_each_task(run: Path, tmp_path: Path) -> None:
    picture = Image.fromarray(scene_image(0, 5, 96))
    predictor = TaskPredictor.load(run)
    (labels,) = predictor.predict(picture, "labels")
    assert len(labels.labels) == 28  # type: ignore[union-attr]
    (found,) = predictor.predict(picture, "objects", score=0.0)
    assert isinstance(found, FoundObjects)
    for one in found.objects:
        left, top, right, bottom = one.box
        assert 0 <= left <= right <= 96
        assert 0 <= top <= bottom <= 96
        pixels = one.pixels()
        assert pixels is not None
        assert pixels.shape == (96, 96)
    assert np.asarray(overlay(picture, found)).shape == (96, 96, 3)
    (broken,) = predictor.predict([b"nonsense"], "objects")
    assert broken.error is not None
    with pytest.raises(ConfigError, match="no task 'object'.*objects"):
        predictor.predict(picture, "object")


def test_only_the_experts_of_the_task_are_computed(run: Path) -> None:
    predictor = TaskPredictor.load(run)
    seen: list[int] = []
    bank = next(m for name, m in predictor.model.named_modules() if name.endswith("mlp.experts"))
    bank.register_forward_pre_hook(lambda _module, given: seen.append(len(given[0])))
    predictor.predict(Image.new("RGB", (64, 64)), "labels")
    tokens = (64 // 8) ** 2
    assert seen == [pytest.approx(tokens * predictor.model.k("labels"), abs=tokens)]
    assert seen[0] < tokens * 4


def test_the_command_line(tmp_path: Path) -> None:
    import yaml

    recipe, out = tmp_path / "small.yaml", tmp_path / "run"
    recipe.write_text(yaml.safe_dump(SMALL))
    trained = manylabel("train", "--recipe", recipe, "--out", out, "--set", "train.steps=2")
    assert trained.returncode == 0, trained.stderr
    assert "mask AP" in trained.stdout
    Image.fromarray(scene_image(0, 1, 64)).save(tmp_path / "a.jpg")
    asked = manylabel("predict", out, tmp_path / "a.jpg")
    assert asked.returncode == 2
    assert "choose one with --task: labels, objects" in asked.stderr
    found = manylabel(
        "predict", out, tmp_path / "a.jpg", "--task", "objects", "--json", "--overlay", tmp_path / "drawn"
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)[0]["image"].endswith("a.jpg")
    assert len(list((tmp_path / "drawn").glob("*.png"))) == 1
    refused = manylabel("train", "--recipe", recipe, "--out", out, "--head", "hsq")
    assert refused.returncode == 2
    assert "--head" in refused.stderr
    again = manylabel("train", "--recipe", recipe, "--out", out)
    assert again.returncode == 2
    assert "already holds a run" in again.stderr


def test_one_task_alone_and_several_are_compared(run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    train_tasks(alone, recipe=SMALL, settings=["tasks.labels=none", "train.steps=2"])
    assert set(json.loads((alone / "results.json").read_text())["tasks"]) == {"objects"}
    told = manylabel("compare", run, alone, "--out", tmp_path / "both", "--name", "all", "--name", "alone")
    assert told.returncode == 0, told.stderr
    found = json.loads((tmp_path / "both" / "comparison.json").read_text())
    assert found["columns"] == [["labels", "mAP"], ["objects", "AP"], ["objects", "mask AP"]]
    several, one = found["methods"]
    assert several["mean"] == pytest.approx(np.mean([cell["mean"] for cell in several["figures"]]))
    assert one["figures"][0] is None
    assert one["mean"] is None  # it has not all of them
    both = [b["mean"] - a["mean"] for a, b in zip(several["figures"][1:], one["figures"][1:], strict=True)]
    assert one["change"] == pytest.approx(np.mean(both))
    assert several["seconds"] > 0
    page = (tmp_path / "both" / "comparison.html").read_text()
    assert page.startswith("<!doctype html")
    assert "alone" in page
    results = json.loads((alone / "results.json").read_text())
    results["tasks"]["objects"]["judged"] = "0" * 64  # as many images, but not the same
    write_json(alone / "results.json", results)
    other = manylabel("compare", run, alone, "--out", tmp_path / "none")
    assert other.returncode == 2
    assert "task objects was judged on other images of scenes" in " ".join(other.stderr.split())
    del results["tasks"]["objects"]["judged"]  # of an earlier version: nobody knows
    write_json(alone / "results.json", results)
    assert manylabel("compare", alone, run, "--out", tmp_path / "again").returncode == 0
    mixed = manylabel("compare", run, tmp_path, "--out", tmp_path / "none")
    assert mixed.returncode == 2
    assert "results.json" in mixed.stderr or "holds no results of one task" in mixed.stderr


@pytest.mark.slow
def test_a_frozen_stem_in_front(tmp_path: Path) -> None:
    """What is known already stays as it is, travels in the bundle, and its size decides that of the patches."""
    settings = ["vit.stem=efficientnet_lite0", "vit.patch=16", "train.steps=2"]
    result = train_tasks(tmp_path / "run", recipe=SMALL, settings=settings)
    stem = TaskPredictor.load(result.folder).model.vit.stem
    assert stem is not None
    known = Stem("efficientnet_lite0", 16).state_dict()
    assert all(torch.equal(tensor, known[name]) for name, tensor in stem.state_dict().items())
    again = evaluate_tasks(result.folder)["tasks"]["labels"]["figures"]["mAP"]
    assert again == pytest.approx(result.results["tasks"]["labels"]["figures"]["mAP"], abs=0.01)
    with pytest.raises(ConfigError, match="no map with 12 pixels a cell; set vit.patch to one of 2, 4, 8, 16, 32"):
        Stem("efficientnet_lite0", 12)


def test_from_python(tmp_path: Path) -> None:
    import yaml

    import manylabel as ml

    recipe = tmp_path / "small.yaml"
    recipe.write_text(yaml.safe_dump(SMALL))
    trained = ml.train(out=tmp_path / "run", recipe=str(recipe), settings=["train.steps=2"], seed=1)
    assert isinstance(trained, ml.MultiTaskResult)
    results, details = ml.evaluate(trained.folder, task="labels")
    assert list(results["tasks"]) == ["labels"]
    assert details == {}
    with pytest.raises(ml.ManylabelError, match="TaskPredictor"):
        ml.Predictor.load(trained.folder)
    with pytest.raises(ml.ManylabelError, match="head: not for several tasks"):
        ml.train(out=tmp_path / "other", recipe=str(recipe), head="linear")


def test_stopped_and_resumed_it_ends_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, at and after a step that changes the number of experts: no loss falls by 90 %, so it does at 6."""
    settings = ["train.first=labels", "train.first_steps=2", "train.steps=6", "selection.least=0.9"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train_tasks(whole, recipe=SMALL, settings=settings)
    assert [row["k"]["objects"] for row in _history(whole)][:7] == [1, 1, 1, 1, 1, 2, 2]
    step = MultiTaskTrainer._after_step
    left = [1, 2, 5, 6, 7]

    def stop_there(self: MultiTaskTrainer) -> None:
        if left and self.position.step == left[0]:
            left.pop(0)
            self.stop.signal = 15
        step(self)

    monkeypatch.setattr(MultiTaskTrainer, "_after_step", stop_there)
    with pytest.raises(Stopped, match="everything is saved"):
        train_tasks(parts, recipe=SMALL, settings=settings)
    while left:
        with pytest.raises(Stopped):
            train_tasks(parts, resume=True)
    train_tasks(parts, resume=True)
    assert _weights(parts) == _weights(whole)
    assert _history(parts) == _history(whole)


def test_a_growth_needs_time_to_show_what_it_brings(tmp_path: Path) -> None:
    """What is not trained with is neither judged nor counted: nothing grows in the last `patience` steps."""
    settings = ["train.steps=7", "selection.every=1", "selection.patience=3", "selection.least=0.9"]
    train_tasks(tmp_path, recipe=SMALL, settings=settings)
    assert [row["k"]["labels"] for row in _history(tmp_path)] == [1, 1, 1, 2, 2, 2, 2]


def test_the_workers_end_while_judging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler signals all processes: without workers there are no images, and the run is saved all the same."""
    settings = ["train.steps=4", "train.judge_every=2"]

    kept = TaskWork.judge

    def ended(self: TaskWork, *given: Any) -> Any:
        if self.name != "objects":
            return kept(self, *given)
        self.stop.signal = 15
        raise self.none_readable()

    def unreadable(self: TaskWork, *given: Any) -> Any:
        if self.name != "objects":
            return kept(self, *given)
        raise self.none_readable()

    with monkeypatch.context() as patch:
        patch.setattr(TaskWork, "judge", ended)
        with pytest.raises(Stopped, match="after step 2 of 4; everything is saved"):
            train_tasks(tmp_path / "run", recipe=SMALL, settings=settings)
        with pytest.raises(Stopped, match="after step 2 of 4"):
            train_tasks(tmp_path / "run", resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(TaskWork, "judge", unreadable)
        with pytest.raises(DataError, match="none of its 6 images to judge by can be read"):
            train_tasks(tmp_path / "run", resume=True)
    train_tasks(tmp_path / "run", resume=True)


def test_a_step_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved in the middle of what follows step 4, ended in step 6: its row is there already when it is done again."""
    look, step = MultiTaskTrainer._select, MultiTaskTrainer._step

    def saved(self: MultiTaskTrainer, losses: list[float]) -> Any:
        if self.position.step == 4:
            self.save()
        return look(self, losses)

    def killed(self: MultiTaskTrainer) -> None:
        if self.position.step == 5:
            raise KeyboardInterrupt
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(MultiTaskTrainer, "_select", saved)
        patch.setattr(MultiTaskTrainer, "_step", killed)
        with pytest.raises(KeyboardInterrupt):
            train_tasks(tmp_path, recipe=SMALL)
    train_tasks(tmp_path, resume=True)
    assert [row["epoch"] for row in _history(tmp_path)] == list(range(1, 9))


def test_data_with_boxes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty images among them; masks that nobody drew are not made up, drawn ones are learnt."""
    folder = tmp_path / "data"
    folder.mkdir()
    images, objects = [], []
    for number in range(1, 21):
        Image.fromarray(np.random.default_rng(number).integers(0, 255, (64, 64, 3), np.uint8)).save(
            folder / f"{number}.png"
        )
        images.append({"id": number, "file_name": f"{number}.png", "width": 64, "height": 64})
        if number % 3:
            objects.append(
                {"id": number, "image_id": number, "category_id": 1, "bbox": [8, 8, 30, 30], "area": 900, "iscrowd": 0}
            )
    said: list[str] = []
    monkeypatch.setattr("manylabel.console.say", said.append)
    outline = {"segmentation": [[8, 8, 38, 8, 38, 38, 8, 38]]}
    for name, more in (("boxes", {}), ("masks", outline)):
        told = {"images": images, "annotations": [one | more for one in objects]}
        (folder / f"{name}.json").write_text(json.dumps({**told, "categories": [{"id": 1, "name": "dog"}]}))
        settings = [
            "tasks.labels=none",
            f"tasks.objects.data.path={folder / f'{name}.json'}",
            f"tasks.objects.data.images={folder}",
            "train.steps=2",
        ]
        results = train_tasks(tmp_path / name, recipe=SMALL, settings=settings).results
        assert ("mask AP" in results["tasks"]["objects"]["figures"]) == (name == "masks")
        found = TaskPredictor.load(tmp_path / name).predict(folder / "1.png", "objects", score=0.0)[0]
        assert isinstance(found, FoundObjects)
        assert {one.mask is None for one in found.objects} == {name == "boxes"}
    assert said.count("task objects: data has boxes without masks; it learns boxes only") == 1


def test_a_stop_in_the_last_judgement_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = MultiTaskTrainer.judge

    def asked(self: MultiTaskTrainer, *given: Any, **more: Any) -> Any:
        self.stop.signal = 15
        return judge(self, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(MultiTaskTrainer, "judge", asked)
        with pytest.raises(Stopped, match="stopped while judging; everything is saved"):
            train_tasks(tmp_path / "run", recipe=SMALL, settings=["train.steps=2"])
    assert not (tmp_path / "run" / "results.json").exists()
    assert train_tasks(tmp_path / "run", resume=True).results["tasks"]["labels"]["value"] is not None


@pytest.mark.parametrize(
    "sharing", [{"sharing": "dense"}, {"sharing": "taps"}, {"router": "agnostic"}, {"capacity": 0.0, "priority": True}]
)
def test_other_ways_to_share_train(tmp_path: Path, sharing: dict[str, Any]) -> None:
    result = train_tasks(tmp_path / "run", recipe=_with(experts=sharing), settings=["train.steps=2"])
    assert result.results["tasks"]["objects"]["figures"]["AP"] is not None


def test_any_head_on_top(tmp_path: Path) -> None:
    settings = [
        "train.steps=2",
        "tasks.labels.head.name=ml_decoder",
        "tasks.labels.head.dim=16",
        "tasks.labels.head.heads=2",
    ]
    result = train_tasks(tmp_path / "run", recipe=SMALL, settings=settings)
    assert result.results["tasks"]["labels"]["figures"]["mAP"] > 0


@pytest.mark.slow
def test_one_label_of_an_image_first_then_its_objects_too(tmp_path: Path, colours: Path) -> None:
    """The paper's own order: classification alone, then both tasks, on different data and in different sizes."""
    classes = {"kind": "single_label", "data": {"path": str(colours), "workers": 0}, "image_size": 32, "batch_size": 8}
    tasks = {"classes": classes, "objects": SMALL["tasks"]["objects"]}
    settings = ["train.first=classes", "train.first_steps=40", "train.steps=4", "optimiser.lr=0.003"]
    result = train_tasks(tmp_path / "run", recipe={**SMALL, "tasks": tasks}, settings=settings)
    told = result.results["tasks"]["classes"]
    assert told["goal"] == "top-1"
    assert told["value"] > 50  # 25 by guessing
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(set(row["loss"]) == {"classes"} for row in rows if row["epoch"] <= 40)
    (said,) = TaskPredictor.load(result.folder).predict(next((colours / "red").iterdir()), "classes")
    assert len(said.present) == 1  # type: ignore[union-attr]


def test_learning_happens(tmp_path: Path) -> None:
    """The loss of both tasks falls."""
    train_tasks(
        tmp_path / "run", recipe=SMALL, settings=["train.steps=40", "optimiser.lr=0.003", "selection.adaptive=false"]
    )
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for task in ("labels", "objects"):
        losses = [row["loss"][task] for row in rows]
        assert np.mean(losses[-8:]) < 0.9 * np.mean(losses[:4])


def test_data_that_a_task_cannot_use(tmp_path: Path, photos: Path) -> None:
    tasks = {"objects": {**SMALL["tasks"]["objects"], "data": {"path": str(photos), "workers": 0}}}
    with pytest.raises(DataError, match="has no boxes"):
        train_tasks(tmp_path / "run", recipe={**SMALL, "tasks": tasks})
    with pytest.raises(ConfigError, match="no task 'label'.*labels"):
        train_tasks(tmp_path / "run", recipe=_with(train={"first": "label", "first_steps": 1}))
    with pytest.raises(DataError, match="too few to hold out"):
        train_tasks(tmp_path / "run", recipe=_with(selection={"held_out": 0.001}))
    assert not (tmp_path / "run" / "config.yaml").exists()  # nothing was begun, so nothing stands in the way


def test_a_run_that_cannot_begin_leaves_the_old_one(run: Path, photos: Path) -> None:
    before = (run / "results.json").read_text()
    tasks = {"objects": {**SMALL["tasks"]["objects"], "data": {"path": str(photos), "workers": 0}}}
    with pytest.raises(DataError, match="has no boxes"):
        train_tasks(run, recipe={**SMALL, "tasks": tasks}, overwrite=True)
    assert (run / "results.json").read_text() == before
    assert len(TaskPredictor.load(run).tasks) == 2


def test_a_stop_while_judging_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a look at the held-out or val images must decide nothing: after resuming it is taken whole."""
    settings = ["train.judge_every=2", "train.steps=4"]
    train_tasks(tmp_path / "whole", recipe=SMALL, settings=settings)
    loss = TaskWork.held_out_loss

    def asked(self: TaskWork, *given: Any) -> float:
        if self.name != "objects":
            return loss(self, *given)
        self.stop.signal = 15
        return 0.5 * loss(self, *given)  # as of a part of the images

    with monkeypatch.context() as patch:
        patch.setattr(TaskWork, "held_out_loss", asked)
        with pytest.raises(Stopped, match="after step 2 of 4"):
            train_tasks(tmp_path / "cut", recipe=SMALL, settings=settings)
    train_tasks(tmp_path / "cut", resume=True)
    assert _weights(tmp_path / "cut") == _weights(tmp_path / "whole")
    assert _history(tmp_path / "cut") == _history(tmp_path / "whole")


def test_a_bundle_that_was_changed_is_refused(run: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "bundle"
    shutil.copytree(run / "bundle", copy)
    (copy / "tasks.json").write_text((copy / "tasks.json").read_text().replace("labels", "label5", 1))
    with pytest.raises(BundleError, match="another checksum"):
        TaskPredictor.load(copy)


def test_the_recipe_for_a_laptop_is_of_several_tasks() -> None:
    assert set(load_recipe("adamv-moe-scenes")["tasks"]) == {"labels", "objects"}

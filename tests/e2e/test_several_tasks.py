"""Several tasks in one model, from data to predictions: the files, the figures, stopping in the middle, the errors."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import manylabel
from PIL import Image
from small_tasks import SMALL

from manylabel import run as runs
from manylabel.backbone.stem import Stem
from manylabel.bundle import load_bundle
from manylabel.config import load_recipe, merge
from manylabel.core.evidence import Scores
from manylabel.data.scenes import scene_image
from manylabel.error import BundleError, ConfigError, DataError
from manylabel.inference.found_objects import FoundObjects, overlay
from manylabel.inference.predictor import Predictor
from manylabel.model import TaskModel
from manylabel.run import judging
from manylabel.stop import Stopped
from manylabel.storage.atomic import sha256, write_json
from manylabel.training import loop
from manylabel.training import scoring as score_module
from manylabel.training.loop import Trainer
from manylabel.training.work import TaskAtWork


def _train(out: Path, **more: Any) -> runs.RunResult:
    return runs.train(out=out, **more)


def _evaluated(path: Path, **more: Any) -> dict[str, Any]:
    """The results of each task."""
    results, details = runs.evaluate(path, **more)
    assert details == {}
    return results["tasks"]


def _weights(folder: Path) -> str:
    return sha256(folder / "bundle" / "weights.safetensors")


def _history(folder: Path) -> list[dict[str, Any]]:
    """But for the time it took."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several") / "run"
    _train(folder, recipe=SMALL, settings=["train.evaluate_every=4"])
    return folder


def test_what_a_run_leaves(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    assert set(results["tasks"]) == {"labels", "objects"}
    assert results["tasks"]["labels"]["goal"] == "mAP"
    assert {"AP", "AP50", "mask AP"} <= set(results["tasks"]["objects"]["figures"])
    assert results["tasks"]["labels"]["active_parameters"] < results["model"]["parameters"]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "held_out" in row] == [2, 4, 6, 8]
    assert [row["step"] for row in rows if "judged" in row] == [4]
    assert [row["epoch"] for row in rows] == [1, 1, 1, 1, 1, 2, 2, 2]  # of 19 images to learn labels from, 4 in a batch
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
    again = _evaluated(run)
    told = json.loads((run / "results.json").read_text())
    for name in ("labels", "objects"):
        for figure, value in told["tasks"][name]["figures"].items():
            assert again[name]["figures"][figure] == (None if value is None else pytest.approx(value, abs=0.01))
        assert again[name]["experts"] == told["tasks"][name]["experts"]


def test_other_images_than_val_are_judged(run: Path, tmp_path: Path) -> None:
    told = manylabel("evaluate", run, "--task", "labels", "--split", "train", "--report", tmp_path / "train.html")
    assert told.returncode == 0, told.stderr
    assert "train" in told.stdout
    assert (tmp_path / "train.html").read_text().startswith("<!doctype html")
    again = _evaluated(run, task="labels", split="train")["labels"]
    assert (again["split"], again["images"]) == ("train", SMALL["tasks"]["labels"]["data"]["scenes"]["train"])
    slip = manylabel("evaluate", run, "--split", "tain")
    assert slip.returncode == 2
    assert "did you mean 'train'" in slip.stderr


def test_a_bundle_knows_its_run(run: Path) -> None:
    found = _evaluated(run / "bundle", task="labels", split="train")["labels"]
    assert found["images"] == SMALL["tasks"]["labels"]["data"]["scenes"]["train"]
    assert any("trained on these images" in note for note in found["notes"])


def test_half_a_judgement_is_none(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal while images are judged: no figures of some of them."""
    kept = judging.score

    def asked(*given: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return kept(*given)

    monkeypatch.setattr(judging, "score", asked)
    with pytest.raises(Stopped, match="nothing was written"):
        runs.evaluate(run, task="objects")


def test_what_others_left_in_a_folder_stays(tmp_path: Path) -> None:
    for name in ("figures/mine.png", "tasks/todo.txt", "report.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    quick = ["train.steps=1", "tasks.objects=none"]
    with pytest.raises(ConfigError, match=r"holds report\.html, and is not a run"):
        _train(tmp_path, recipe=SMALL, settings=quick)
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").unlink()
    _train(tmp_path, recipe=SMALL, settings=quick)
    assert (tmp_path / "figures" / "mine.png").read_text() == "mine"
    assert (tmp_path / "tasks" / "todo.txt").read_text() == "mine"
    with pytest.raises(ConfigError, match=r"started with other settings \(train\.seed: 0 → 7\)"):
        _train(tmp_path, resume=True, seed=7)
    with pytest.raises(ConfigError, match="was started with other data than elsewhere; resume it without naming any"):
        _train(tmp_path, resume=True, data={"path": "elsewhere"})
    (tmp_path / "labels.csv").write_text("file_name,labels\n")
    settings = [f"tasks.labels.data.path={tmp_path / 'labels.csv'}"]
    with pytest.raises(ConfigError, match="is the folder of the data"):
        _train(tmp_path, recipe=SMALL, settings=settings, overwrite=True)


def test_results_and_bundles_of_other_versions_are_told(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "run")
    results = json.loads((other / "results.json").read_text())
    (other / "results.json").write_text(json.dumps(results | {"schema": 1}))
    for command in (("report", other), ("compare", run, other, "--out", tmp_path / "both")):
        told = manylabel(*command)
        assert told.returncode == 2
        assert "another version of manylabel" in told.stderr
        assert "Traceback" not in told.stderr
    name = "tasks/objects/labels.json"
    told = json.loads((other / "bundle" / name).read_text())
    write_json(other / "bundle" / name, told | {"format": told["format"] + 1})
    sums = json.loads((other / "bundle" / "checksums.json").read_text())
    sums["sha256"][name] = sha256(other / "bundle" / name)
    write_json(other / "bundle" / "checksums.json", sums)
    with pytest.raises(BundleError, match="made by another one; train it again"):
        Predictor.load(other)


def test_predictions_of_each_task(run: Path, tmp_path: Path) -> None:
    picture = Image.fromarray(scene_image(0, 5, 96))
    predictor = Predictor.load(run)
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


def test_every_task_answers_where_none_is_named(run: Path) -> None:
    """Of each image what the tasks say of it one by one, though it is read once."""
    pictures = [Image.fromarray(scene_image(0, number, 96)) for number in range(3)]
    predictor = Predictor.load(run)
    answers = predictor.predict([pictures[0], b"nonsense", *pictures[1:]], score=0.0)
    assert [set(answer) for answer in answers] == [{"labels", "objects"}] * 4
    assert all(answer.error is not None for answer in answers.pop(1).values())
    alone = {
        "labels": predictor.predict(pictures, "labels"),
        "objects": predictor.predict(pictures, "objects", score=0.0),
    }
    for number, answer in enumerate(answers):
        labels, told = answer["labels"], alone["labels"][number]
        assert [one.label for one in labels.labels] == [one.label for one in told.labels]
        assert [one.score for one in labels.labels] == pytest.approx([one.score for one in told.labels], abs=1e-5)
        found, told = answer["objects"].objects, alone["objects"][number].objects
        assert [one.label for one in found] == [one.label for one in told]
        assert [one.score for one in found] == pytest.approx([one.score for one in told], abs=1e-5)


def test_only_the_experts_of_the_task_are_computed(run: Path) -> None:
    bundle = load_bundle(run)
    predictor, model = Predictor(bundle), bundle.model
    seen: list[int] = []
    bank = next(m for name, m in model.named_modules() if name.endswith("mlp.experts"))
    bank.register_forward_pre_hook(lambda _module, given: seen.append(len(given[0])))
    predictor.predict(Image.new("RGB", (64, 64)), "labels")
    tokens = (64 // 8) ** 2
    assert seen == [pytest.approx(tokens * model.experts("labels"), abs=tokens)]
    assert seen[0] < tokens * 4


def test_the_command_line(tmp_path: Path) -> None:
    import yaml

    recipe, out = tmp_path / "small.yaml", tmp_path / "run"
    recipe.write_text(yaml.safe_dump(SMALL))
    trained = manylabel("train", "--recipe", recipe, "--out", out, "--set", "train.steps=2")
    assert trained.returncode == 0, trained.stderr
    assert "mask AP" in trained.stdout
    Image.fromarray(scene_image(0, 1, 64)).save(tmp_path / "a.jpg")
    every = manylabel("predict", out, tmp_path / "a.jpg", "--json")
    assert every.returncode == 0, every.stderr
    (answer,) = json.loads(every.stdout)
    assert answer["image"].endswith("a.jpg")
    assert len(answer["tasks"]["labels"]["labels"]) == 28
    assert set(answer["tasks"]["objects"]) == {"objects"}
    plain = manylabel("predict", out, tmp_path / "a.jpg")
    assert [line.split(": ")[1] for line in plain.stdout.splitlines()] == ["labels", "objects"]
    slip = manylabel("predict", out, tmp_path / "a.jpg", "--task", "object")
    assert slip.returncode == 2
    assert "there is no task 'object' among labels, objects; did you mean 'objects'?" in slip.stderr
    found = manylabel(
        "predict", out, tmp_path / "a.jpg", "--task", "objects", "--json", "--overlay", tmp_path / "drawn"
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)[0]["image"].endswith("a.jpg")
    assert len(list((tmp_path / "drawn").glob("*.png"))) == 1
    refused = manylabel("train", "--recipe", recipe, "--out", out, "--head", "hsq")
    assert refused.returncode == 2
    assert "head stands beside tasks; say it for one of them: tasks.labels.head" in refused.stderr
    again = manylabel("train", "--recipe", recipe, "--out", out)
    assert again.returncode == 2
    assert "already holds a run" in again.stderr


def test_one_task_alone_and_several_are_compared(run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    _train(alone, recipe=SMALL, settings=["tasks.labels=none", "train.steps=2"])
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
    used = several["tasks"]["objects"]
    assert 0 < used["backbone_parameters"] < used["active_parameters"]
    page = (tmp_path / "both" / "comparison.html").read_text()
    assert "The first task against the mean of the others" in page
    assert (tmp_path / "both" / "figures" / "plane.png").exists()
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
    settings = ["backbone.options.stem=efficientnet_lite0", "backbone.options.patch=16", "train.steps=2"]
    result = _train(tmp_path / "run", recipe=SMALL, settings=settings)
    stem = load_bundle(result.folder).model.backbone.body.vit.stem
    assert stem is not None
    known = Stem("efficientnet_lite0", 16).state_dict()
    assert all(torch.equal(tensor, known[name]) for name, tensor in stem.state_dict().items())
    again = _evaluated(result.folder)["labels"]["figures"]["mAP"]
    assert again == pytest.approx(result.results["tasks"]["labels"]["figures"]["mAP"], abs=0.01)
    with pytest.raises(
        ConfigError, match="no map with 12 pixels a cell; set backbone.options.patch to one of 2, 4, 8, 16, 32"
    ):
        Stem("efficientnet_lite0", 12)


def test_from_python(tmp_path: Path) -> None:
    import yaml

    import manylabel as ml

    recipe = tmp_path / "small.yaml"
    recipe.write_text(yaml.safe_dump(SMALL))
    trained = ml.train(out=tmp_path / "run", recipe=str(recipe), settings=["train.steps=2"], seed=1)
    assert isinstance(trained, ml.RunResult)
    results, details = ml.evaluate(trained.folder, task="labels")
    assert list(results["tasks"]) == ["labels"]
    assert details == {}
    predictor = ml.Predictor.load(trained.folder)
    assert predictor.tasks == ("labels", "objects")
    with pytest.raises(ml.ManylabelError, match="several tasks; choose one: labels, objects"):
        predictor.labels  # noqa: B018
    with pytest.raises(
        ml.ManylabelError, match=r"head stands beside tasks; say it for one of them: tasks\.labels\.head"
    ):
        ml.train(out=tmp_path / "other", recipe=str(recipe), head="linear")
    assert not (tmp_path / "other").exists()


def test_names_of_earlier_versions_lead_to_those_of_today() -> None:
    import manylabel as ml

    with pytest.warns(FutureWarning, match="manylabel.TaskPredictor is manylabel.Predictor now"):
        assert ml.TaskPredictor is ml.Predictor
    with pytest.warns(FutureWarning, match="manylabel.MultiTaskResult is manylabel.RunResult now"):
        assert ml.MultiTaskResult is ml.RunResult


def test_stopped_and_resumed_it_ends_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, at and after a step that changes the number of experts: no loss falls by 90 %, so it does at 6."""
    settings = ["train.first=labels", "train.first_steps=2", "train.steps=6", "train.adapt.min_decrease=0.9"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _train(whole, recipe=SMALL, settings=settings)
    assert [row["k"]["objects"] for row in _history(whole)][:7] == [1, 1, 1, 1, 1, 2, 2]
    between = Trainer._between_steps
    left = [1, 2, 5, 6, 7]

    def stop_there(self: Trainer) -> None:
        if left and self.state.step + self.phase.before == left[0]:
            left.pop(0)
            self.stop.signal = 15
        between(self)

    monkeypatch.setattr(Trainer, "_between_steps", stop_there)
    with pytest.raises(Stopped, match="everything is saved"):
        _train(parts, recipe=SMALL, settings=settings)
    while left:
        with pytest.raises(Stopped):
            _train(parts, resume=True)
    _train(parts, resume=True)
    assert _weights(parts) == _weights(whole)
    assert _history(parts) == _history(whole)


def test_a_growth_needs_time_to_show_what_it_brings(tmp_path: Path) -> None:
    """What is not trained with is neither judged nor counted: nothing grows in the last `patience` steps."""
    adapt = {"every": 1, "patience": 3, "min_decrease": 0.9}
    settings = ["train.steps=7", *(f"train.adapt.{key}={value}" for key, value in adapt.items())]
    _train(tmp_path, recipe=SMALL, settings=settings)
    assert [row["k"]["labels"] for row in _history(tmp_path)] == [1, 1, 1, 2, 2, 2, 2]


def test_the_workers_end_while_judging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler signals all processes: without workers there are no images, and the run is saved all the same."""
    settings = ["train.steps=4", "train.evaluate_every=2"]
    nothing = score_module.Scored(Scores.joined([]), [])
    kept = score_module.score

    def without_images(ended: bool) -> Any:
        def scored(model: TaskModel, *given: Any) -> Any:
            if model.name != "objects":
                return kept(model, *given)
            if ended:
                signal.raise_signal(signal.SIGTERM)
            return nothing

        return scored

    with monkeypatch.context() as patch:
        patch.setattr(loop, "score", without_images(ended=True))
        with pytest.raises(Stopped, match="in step 2 of 4; everything is saved"):
            _train(tmp_path / "run", recipe=SMALL, settings=settings)
        with pytest.raises(Stopped, match="in step 2 of 4"):
            _train(tmp_path / "run", resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "score", without_images(ended=False))
        with pytest.raises(DataError, match="task objects: no validation image can be read"):
            _train(tmp_path / "run", resume=True)
    _train(tmp_path / "run", resume=True)


def test_a_step_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved in the middle of what follows step 4, ended in step 6: its row is there already when it is done again."""
    adapt, step = Trainer._adapt, Trainer._step

    def saved(self: Trainer, losses: dict[str, float]) -> Any:
        if self.state.step == 4:
            self.save()
        return adapt(self, losses)

    def killed(self: Trainer) -> None:
        if self.state.step == 5:
            raise KeyboardInterrupt
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_adapt", saved)
        patch.setattr(Trainer, "_step", killed)
        with pytest.raises(KeyboardInterrupt):
            _train(tmp_path, recipe=SMALL)
    _train(tmp_path, resume=True)
    assert [row["step"] for row in _history(tmp_path)] == list(range(1, 9))


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
        results = _train(tmp_path / name, recipe=SMALL, settings=settings).results
        assert ("mask AP" in results["tasks"]["objects"]["figures"]) == (name == "masks")
        found = Predictor.load(tmp_path / name).predict(folder / "1.png", "objects", score=0.0)[0]
        assert isinstance(found, FoundObjects)
        assert {one.mask is None for one in found.objects} == {name == "boxes"}
    assert said.count("task objects: data has boxes without masks; it learns boxes only") == 1


def test_one_task_that_finds_objects_needs_no_name(tmp_path: Path) -> None:
    objects = {
        key: value for key, value in SMALL["tasks"]["objects"].items() if key in ("kind", "data", "head", "augment")
    }
    recipe = {**{key: value for key, value in SMALL.items() if key != "tasks"}, **objects}
    settings = ["backbone.image_size=64", "train.batch_size=2", "train.steps=4", "train.evaluate_every=2"]
    results = _train(tmp_path / "run", recipe=recipe, settings=settings).results
    assert list(results["tasks"]) == ["labels"]
    rows = _history(tmp_path / "run")
    assert all(set(row["loss"]) == {"labels"} for row in rows)
    judged = {row["step"]: set(row["judged"]) for row in rows if "judged" in row}
    assert judged == {2: {"labels"}, 4: {"labels"}}  # the best weights are kept, so the last ones are looked at, too
    figures = _evaluated(tmp_path / "run")["labels"]["figures"]
    assert figures["AP"] == pytest.approx(results["tasks"]["labels"]["figures"]["AP"], abs=0.01)
    (found,) = Predictor.load(tmp_path / "run").predict(Image.fromarray(scene_image(0, 5, 96)), score=0.0)
    assert isinstance(found, FoundObjects)
    told = manylabel("report", tmp_path / "run")
    assert told.returncode == 0, told.stderr


def test_a_stop_in_the_last_judgement_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = Trainer.evaluate

    def asked(self: Trainer, *given: Any, **more: Any) -> Any:
        self.stop.signal = 15
        return evaluate(self, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "evaluate", asked)
        with pytest.raises(Stopped, match="stopped in step 2 of 2; everything is saved"):
            _train(tmp_path / "run", recipe=SMALL, settings=["train.steps=2"])
    assert not (tmp_path / "run" / "results.json").exists()
    assert _train(tmp_path / "run", resume=True).results["tasks"]["labels"]["value"] is not None


def _with_experts(options: dict[str, Any]) -> dict[str, Any]:
    return merge(SMALL, {"backbone": {"options": {"experts": options}}})


@pytest.mark.parametrize(
    "sharing",
    [
        {"sharing": "dense"},
        {"sharing": "taps"},
        {"router": "agnostic"},
        {"router": "conditioned", "router_layers": 2, "hidden": 16},
        {"capacity": 0.0, "priority": True},
    ],
)
def test_other_ways_to_share_train(tmp_path: Path, sharing: dict[str, Any]) -> None:
    result = _train(tmp_path / "run", recipe=_with_experts(sharing), settings=["train.steps=2"])
    assert result.results["tasks"]["objects"]["figures"]["AP"] is not None


def test_shared_weights_that_are_frozen_after_the_first_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TAPS as released: what one task has learned alone is as it was at the end; a stop between changes nothing."""
    ends: list[dict[str, torch.Tensor]] = []
    end = Trainer._end

    def ended(self: Trainer) -> None:
        end(self)
        ends.append({name: tensor.clone() for name, tensor in self.model.state_dict().items() if ".mlp." in name})

    monkeypatch.setattr(Trainer, "_end", ended)
    settings = ["train.first=labels", "train.first_steps=2", "train.steps=2", "train.adapt.enabled=false"]
    _train(tmp_path / "run", recipe=_with_experts({"sharing": "taps_released"}), settings=settings)
    alone, both = ends
    for name, tensor in alone.items():
        own = name.rpartition(".delta.")[2]
        rests = name.endswith(("weight", ".delta.labels", ".delta.objects"))
        assert not rests or torch.equal(tensor, both[name]) == name.endswith("weight"), name
        assert own not in ("labels", "objects") or not tensor.any()


def test_a_fixed_number_of_experts_on_the_images_that_adaptive_selection_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`max_experts` = k holds out what the adaptive run does, and never lets a task grow."""
    monkeypatch.setattr(TaskAtWork, "held_out_loss", lambda *_: 1.0)
    found = {}
    for name, most in (("adaptive", 0), ("fixed", 2)):
        settings = ["train.adapt.every=1", f"train.adapt.max_experts={most}", "backbone.options.k=2"]
        _train(tmp_path / name, recipe=SMALL, settings=settings)
        found[name] = _history(tmp_path / name)
    assert found["adaptive"][:2] == found["fixed"][:2]  # the same images and the same bits until the first growth
    assert found["adaptive"][2]["k"] != {"labels": 2, "objects": 2}
    assert all(row["k"] == {"labels": 2, "objects": 2} for row in found["fixed"])


def test_any_head_on_top(tmp_path: Path) -> None:
    settings = [
        "train.steps=2",
        "tasks.labels.head.name=ml_decoder",
        "tasks.labels.head.dim=16",
        "tasks.labels.head.heads=2",
    ]
    result = _train(tmp_path / "run", recipe=SMALL, settings=settings)
    assert result.results["tasks"]["labels"]["figures"]["mAP"] > 0


@pytest.mark.slow
def test_one_label_of_an_image_first_then_its_objects_too(tmp_path: Path, colours: Path) -> None:
    """The paper's own order: classification alone, then both tasks, on different data and in different sizes."""
    classes = {"kind": "single_label", "data": {"path": str(colours), "workers": 0}, "image_size": 32, "batch_size": 8}
    tasks = {"classes": classes, "objects": SMALL["tasks"]["objects"]}
    settings = ["train.first=classes", "train.first_steps=40", "train.steps=4", "optimiser.lr=0.003"]
    result = _train(tmp_path / "run", recipe={**SMALL, "tasks": tasks}, settings=settings)
    told = result.results["tasks"]["classes"]
    assert told["goal"] == "top-1"
    assert told["value"] > 50  # 25 by guessing
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(set(row["loss"]) == {"classes"} for row in rows if row["step"] <= 40)
    assert all(set(row["loss"]) == {"classes", "objects"} for row in rows if row["step"] > 40)
    assert rows[-1]["step"] == 44
    (said,) = Predictor.load(result.folder).predict(next((colours / "red").iterdir()), "classes")
    assert len(said.present) == 1  # type: ignore[union-attr]


def test_learning_happens(tmp_path: Path) -> None:
    """The loss of both tasks falls; that of labels from even scores, for their shares are most of what it can learn."""
    settings = [
        "train.steps=40",
        "optimiser.lr=0.003",
        "train.adapt.enabled=false",
        "tasks.labels.head.prior_bias=false",
    ]
    _train(tmp_path / "run", recipe=SMALL, settings=settings)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for task in ("labels", "objects"):
        losses = [row["loss"][task] for row in rows]
        assert np.mean(losses[-8:]) < 0.9 * np.mean(losses[:4])


def test_data_that_a_task_cannot_use(tmp_path: Path, photos: Path) -> None:
    tasks = {"objects": {**SMALL["tasks"]["objects"], "data": {"path": str(photos), "workers": 0}}}
    with pytest.raises(DataError, match="has no boxes"):
        _train(tmp_path / "run", recipe={**SMALL, "tasks": tasks})
    with pytest.raises(ConfigError, match="no task 'label'.*labels"):
        _train(tmp_path / "run", recipe=SMALL, settings=["train.first=label", "train.first_steps=1"])
    with pytest.raises(DataError, match="too few to hold out"):
        _train(tmp_path / "run", recipe=SMALL, settings=["train.adapt.held_out=0.001"])
    assert not (tmp_path / "run" / "config.yaml").exists()  # nothing was begun, so nothing stands in the way


def test_a_run_that_cannot_begin_leaves_the_old_one(run: Path, photos: Path) -> None:
    before = (run / "results.json").read_text()
    tasks = {"objects": {**SMALL["tasks"]["objects"], "data": {"path": str(photos), "workers": 0}}}
    with pytest.raises(DataError, match="has no boxes"):
        _train(run, recipe={**SMALL, "tasks": tasks}, overwrite=True)
    assert (run / "results.json").read_text() == before
    assert len(Predictor.load(run).tasks) == 2


def test_a_stop_while_judging_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a look at the held-out or val images must decide nothing: after resuming it is taken whole."""
    settings = ["train.evaluate_every=2", "train.steps=4"]
    _train(tmp_path / "whole", recipe=SMALL, settings=settings)
    loss = TaskAtWork.held_out_loss

    def asked(self: TaskAtWork, *given: Any) -> float:
        if self.name != "objects":
            return loss(self, *given)
        self.stop.signal = 15
        return 0.5 * loss(self, *given)  # as of a part of the images

    with monkeypatch.context() as patch:
        patch.setattr(TaskAtWork, "held_out_loss", asked)
        with pytest.raises(Stopped, match="in step 2 of 4"):
            _train(tmp_path / "cut", recipe=SMALL, settings=settings)
    _train(tmp_path / "cut", resume=True)
    assert _weights(tmp_path / "cut") == _weights(tmp_path / "whole")
    assert _history(tmp_path / "cut") == _history(tmp_path / "whole")


def test_a_bundle_that_was_changed_is_refused(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run / "bundle", tmp_path / "bundle")
    told = copy / "tasks" / "objects" / "labels.json"
    told.write_text(told.read_text().replace("name", "nam5", 1))
    with pytest.raises(BundleError, match="another checksum"):
        Predictor.load(copy)


def test_the_recipe_for_a_laptop_is_of_several_tasks() -> None:
    assert set(load_recipe("adamv-moe-scenes")["tasks"]) == {"labels", "objects"}

"""Training a part of the backbone: from cached features, with the head first, to the same model as from pixels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from accelerate.utils import set_seed

from manylabel import run
from manylabel.bundle import load_bundle
from manylabel.error import ConfigError
from manylabel.inference.predictor import Predictor
from manylabel.model import Model, TaskModel
from manylabel.score_file import read_scores
from manylabel.training.loop import Trainer

PARTIAL = ["backbone.freeze=partial", "train.epochs=2", "data.workers=0", "train.batch_size=8"]


def _losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_from_the_cache_it_trains_as_from_pixels(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    cached = run.train(str(photos), out=tmp_path / "cached", settings=[*tiny_settings, *PARTIAL])
    pixels = run.train(str(photos), out=tmp_path / "pixels", settings=[*tiny_settings, *PARTIAL, "train.cache=off"])
    assert _losses(tmp_path / "cached") == pytest.approx(_losses(tmp_path / "pixels"), rel=1e-4)
    ours, theirs = (load_bundle(r.bundle).only.model.state_dict() for r in (cached, pixels))
    for name, values in theirs.items():
        assert torch.allclose(ours[name].float(), values.float(), atol=1e-4), name


def test_only_what_lies_behind_the_cut_changes(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    settings = [*tiny_settings, *PARTIAL, "backbone.trained_after=stage4"]
    after = load_bundle(run.train(str(photos), out=tmp_path / "run", settings=settings).bundle).only
    set_seed(after.run.train.seed)
    before = Model(after.run, len(after.labels)).only
    trained = {f"backbone.body.{n}" for n, p in before.backbone.body.named_parameters() if p.requires_grad}
    state = before.state_dict()
    changed = {
        n for n, v in after.model.state_dict().items() if n.startswith("backbone") and not torch.equal(v, state[n])
    }
    assert 0 < len(trained) < len(state)
    assert {n for n in changed if "running" not in n and "num_batches" not in n} == trained


def test_the_second_time_the_frozen_part_is_not_touched(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*tiny_settings, *PARTIAL, "augment.flip=true", "train.views=1", "augment.mixup=0.3"]
    run.train(str(photos), out=tmp_path / "a", settings=settings)

    def touched(*_arguments: object) -> None:
        raise AssertionError("features were computed although they are cached")

    monkeypatch.setattr(TaskModel, "features", touched)
    run.train(str(photos), out=tmp_path / "b", settings=settings)
    assert _losses(tmp_path / "a") == _losses(tmp_path / "b")


def test_the_head_goes_first(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    """… as if it were a linear probe of its own."""
    settings = [*tiny_settings, *PARTIAL]
    run.train(str(photos), out=tmp_path / "probe", settings=[*settings, "backbone.freeze=frozen", "train.epochs=3"])
    run.train(str(photos), out=tmp_path / "run", settings=[*settings, "train.head_first=3", "augment.mixup=0.2"])
    assert _losses(tmp_path / "run" / "head_first") == _losses(tmp_path / "probe")
    assert len(_losses(tmp_path / "run")) == 2


def test_fine_tuning_begins_with_that_head(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Trainer._end

    def sevens(self: Trainer) -> None:
        end(self)
        if self.phase.head_only:
            torch.nn.init.constant_(self.model.only.head.classifier.weight, 7.0)

    monkeypatch.setattr(Trainer, "_end", sevens)
    settings = [*tiny_settings, *PARTIAL, "train.head_first=1", "optimiser.lr=1e-9"]
    bundle = load_bundle(run.train(str(photos), out=tmp_path / "run", settings=settings).bundle)
    assert torch.allclose(bundle.only.model.head.classifier.weight, torch.tensor(7.0), atol=1e-3)


def test_what_is_judged_is_what_predictions_say(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    """Mixed precision is for training; figures and thresholds belong to the model that leaves the run."""
    settings = [*tiny_settings, *PARTIAL, "train.amp=bf16", "head.attention=0.5", "data.validation_share=0.3"]
    result = run.train(str(photos), out=tmp_path / "run", settings=settings)
    scores = read_scores(tmp_path / "run")
    assert scores is not None
    predictor = Predictor.load(result.bundle)
    answers = predictor.predict([photos / "images" / Path(key).name for key in scores.keys])
    for answer, row in zip(answers, scores.scores, strict=True):
        said = {entry.label: entry.score for entry in answer.labels}
        assert [said[label] for label in predictor.labels] == pytest.approx(row.tolist(), abs=1e-4)


def test_unknown_labels_are_not_mixed_away(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    lines = (photos / "labels.csv").read_text().splitlines()
    names = ("red", "green", "blue", "white")
    wide = ["file_name," + ",".join(names)]
    for number, line in enumerate(lines[1:]):
        key, _, found = line.partition(",")
        told = [str(int(name in found)) if (number + i) % 3 else "" for i, name in enumerate(names)]
        wide.append(",".join([key, *told]))
    (photos / "labels.csv").write_text("\n".join(wide) + "\n")
    settings = [*tiny_settings, *PARTIAL]
    run.train(str(photos), out=tmp_path / "plain", settings=settings)
    run.train(str(photos), out=tmp_path / "mixed", settings=[*settings, "augment.mixup=0.5"])
    assert _losses(tmp_path / "plain") == _losses(tmp_path / "mixed")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["backbone.freeze=partial", "backbone.trained_after=stage8"],
            "backbone.trained_after.*no stage 'stage8'.*it has",
        ),
        (["train.head_first=-1"], "train.head_first"),
        (["neck.name=rm", "neck.stages=stage8"], "neck.stages: the backbone has no stage 'stage8'"),
        (["head.name=ml_decoder", "head.stages=stage8,final"], "head.stages: the backbone has no stage 'stage8'"),
    ],
)
def test_clear_errors(
    photos: Path, tmp_path: Path, tiny_settings: list[str], settings: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run.train(str(photos), out=tmp_path / "run", settings=[*tiny_settings, *settings])
    assert not (tmp_path / "run" / "config.yaml").exists()

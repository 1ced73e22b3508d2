"""One task before the others: a stage has its own decay and warm-up, finds capacity, and leaves its average to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_tasks import SMALL

from manylabel import run
from manylabel.config import load_yaml, make_config
from manylabel.error import ConfigError
from manylabel.run.feeds import images_in_a_step
from manylabel.run.settings import stored_config
from manylabel.stop import Stopped
from manylabel.training.loop import Trainer
from manylabel.training.work import TaskAtWork

FIRST = ["train.first=labels", "train.first_steps=6", "train.steps=4"]


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held-out losses that never fall."""
    monkeypatch.setattr(TaskAtWork, "held_out_loss", lambda *_: 1.0)


def test_a_task_that_is_alone_finds_its_number_of_experts(tmp_path: Path, flat: None) -> None:
    every = ["train.adapt.every=1", "train.adapt.patience=2"]
    run.train(out=tmp_path / "run", recipe=SMALL, settings=[*FIRST, *every])
    rows = {row["step"]: row for row in _rows(tmp_path / "run")}
    assert set(rows[3]["held_out"]) == {"labels"}
    assert max(row["k"]["labels"] for step, row in rows.items() if step <= 6) == 2
    assert all(row["k"]["objects"] == 1 for step, row in rows.items() if step <= 6)
    assert set(rows[8]["held_out"]) == {"labels", "objects"}


@pytest.mark.parametrize(("to_the_end", "k"), [("false", 1), ("true", 2)])
def test_growth_in_the_last_steps(tmp_path: Path, flat: None, to_the_end: str, k: int) -> None:
    """Of 4 steps, a loss stands still for 2 after the first look: growing then leaves one step to see what it brings."""
    adapt = ["train.adapt.every=1", "train.adapt.patience=2", f"train.adapt.to_the_end={to_the_end}"]
    run.train(out=tmp_path / "run", recipe=SMALL, settings=["train.steps=4", *adapt])
    assert _rows(tmp_path / "run")[-1]["k"] == {"labels": k, "objects": k}


def test_the_second_stage_begins_from_the_average_of_the_first_and_compares_anew(
    tmp_path: Path, flat: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, begin = Trainer._end, Trainer._begin
    averages, seen = [], []

    def ended(self: Trainer) -> None:
        assert self.ema is not None
        averages.append({name: tensor.clone() for name, tensor in self.ema.average.items()})
        end(self)

    def begun(self: Trainer, number: int) -> None:
        begin(self, number)
        assert self.ema is not None
        selection = self.model.backbone.body.selection
        facts = selection.k.tolist(), selection.best.tolist(), selection.improved.tolist(), self.ema.steps
        own = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        seen.append((own, {name: tensor.clone() for name, tensor in self.ema.average.items()}, facts))

    monkeypatch.setattr(Trainer, "_end", ended)
    monkeypatch.setattr(Trainer, "_begin", begun)
    every = ["train.adapt.every=1", "train.adapt.patience=2", "train.adapt.to_the_end=true"]
    run.train(out=tmp_path / "run", recipe=SMALL, settings=[*FIRST, *every, "train.first_steps=4"])
    own, average, (k, best, improved, steps) = seen[1]
    assert all(torch.equal(own[name], averages[0][name]) for name in own)
    assert all(torch.equal(average[name], own[name]) for name in own)
    assert steps == 0
    assert k[0] == 2  # what was found is kept …
    assert (best, improved) == ([torch.inf, torch.inf], [True, True])  # … and judged by losses of this stage


def test_each_stage_has_its_own_decay_and_warm_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, decays = Trainer._begin, []

    def begun(self: Trainer, number: int) -> None:
        begin(self, number)
        decays.append({group["weight_decay"] for group in self.plain_optimiser.param_groups})

    monkeypatch.setattr(Trainer, "_begin", begun)
    own = ["train.first_optimiser.weight_decay=0.5", "train.first_schedule.warm_up=0.5", "schedule.warm_up=0"]
    run.train(out=tmp_path / "run", recipe=SMALL, settings=[*FIRST, *own, "optimiser.lr=0.001"])
    assert decays == [{0.5, 0.0}, {0.01, 0.0}]
    rates = {row["step"]: row["rate"] for row in _rows(tmp_path / "run")}
    assert rates[1] == pytest.approx(0.0005)  # two of four on the way up
    assert rates[7] < 0.001
    stored = stored_config(load_yaml(tmp_path / "run" / "config.yaml")).train
    assert stored.first_optimiser == {"weight_decay": 0.5}


def test_settings_of_a_first_stage_that_cannot_be(tmp_path: Path) -> None:
    for settings, said in (
        (["train.first_optimiser.weight_decy=1", *FIRST], r"train\.first_optimiser\.weight_decy"),
        (["train.first_schedule.warm_up=2", *FIRST], r"schedule\.warm_up"),
        (["train.first_schedule.warm_up=0.1"], r"of which task\? Name it with train\.first"),
    ):
        with pytest.raises(ConfigError, match=said):
            run.train(out=tmp_path / "run", recipe=SMALL, settings=settings)


def test_a_batch_of_all_processes_together() -> None:
    config = make_config(SMALL, ["tasks.labels.batch_size=1024", "tasks.objects.batch_size=6"])
    assert images_in_a_step(config, "labels", 16) == 1024
    config = make_config(SMALL, ["train.batch_of=all", "tasks.labels.batch_size=1024", "tasks.objects.batch_size=6"])
    assert [images_in_a_step(config, "labels", processes) for processes in (1, 16)] == [1024, 64]
    with pytest.raises(
        ConfigError, match=r"6 images in a step \(train\.batch_of=all\) cannot be shared by 4 processes"
    ):
        images_in_a_step(config, "objects", 4)


@pytest.mark.slow
def test_a_stop_in_either_stage_changes_nothing(tmp_path: Path, flat: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a growth, where it is taken back, at the end of the first stage and behind it."""
    settings = [*FIRST, "train.adapt.every=1", "train.adapt.patience=2", "train.adapt.to_the_end=true"]
    run.train(out=tmp_path / "whole", recipe=SMALL, settings=settings)
    between, left = Trainer._between_steps, [3, 5, 6, 8]

    def stop_there(self: Trainer) -> None:
        if left and self.state.step + self.phase.before == left[0]:
            left.pop(0)
            self.stop.signal = 15
        between(self)

    monkeypatch.setattr(Trainer, "_between_steps", stop_there)
    begun = False
    while left:
        more: dict[str, Any] = {"resume": True} if begun else {"recipe": SMALL, "settings": settings}
        with pytest.raises(Stopped):
            run.train(out=tmp_path / "cut", **more)
        begun = True
    run.train(out=tmp_path / "cut", resume=True)
    whole, cut = (load_file(tmp_path / name / "bundle" / "weights.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    assert [row["k"] for row in _rows(tmp_path / "whole")] == [row["k"] for row in _rows(tmp_path / "cut")]

"""Lines of the history, and what is saved at the end, whatever is evaluated when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_tasks import SMALL

from manylabel import run
from manylabel.stop import Stopped
from manylabel.training.loop import Trainer

HSQ = ["head.name=hsq", "head.dim=16", "head.heads=2", "head.hidden=16", "head.adaptive=true"]


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_every_look_at_held_out_losses_is_kept(tmp_path: Path) -> None:
    """Also of a long run, of whose steps few are noted."""
    settings = ["tasks.objects=none", "train.steps=150", "train.adapt.every=7", "train.adapt.patience=1000"]
    run.train(out=tmp_path / "run", recipe=SMALL, settings=settings)
    rows = _rows(tmp_path / "run")
    assert [row["step"] for row in rows if "held_out" in row] == list(range(7, 150, 7))
    assert rows[-1]["step"] == 150


def test_the_last_step_is_saved_and_noted(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*tiny_settings, "train.keep=last", "train.evaluate_every=4", "train.epochs=2", "train.batch_size=8"]
    evaluate = Trainer.evaluate

    def stopped(self: Trainer, *given: Any) -> Any:
        if self.finished:
            self.stop.signal = 15
        return evaluate(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "evaluate", stopped)
        with pytest.raises(Stopped, match="everything is saved"):
            run.train(str(photos), out=tmp_path / "run", settings=settings)
    trained: list[int] = []
    step = Trainer._step
    monkeypatch.setattr(Trainer, "_step", lambda self: (trained.append(1), step(self)))
    run.train(out=tmp_path / "run", resume=True)
    assert not trained
    assert [row["step"] for row in _rows(tmp_path / "run")] == [4, 8, 10]


def test_a_head_adapts_where_steps_are_counted(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    observe = Trainer._observe

    def spied(self: Trainer, scored: Any) -> None:
        heard.extend(self.state.step for _ in scored)
        observe(self, scored)

    monkeypatch.setattr(Trainer, "_observe", spied)
    settings = [*tiny_settings, *HSQ, "train.steps=12", "train.batch_size=8", "data.workers=0"]
    run.train(str(photos), out=tmp_path / "run", settings=settings)
    assert heard == [5, 10]  # after every epoch of 34 images

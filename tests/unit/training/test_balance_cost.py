"""What the routers cost is added as it is; multiplied by the task's weight only where that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_tasks import SMALL

from manylabel import run
from manylabel.training.loop import Trainer


@pytest.mark.parametrize("weigh", [False, True])
def test_a_task_without_weight_still_balances_unless_costs_are_weighed(
    weigh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, end, gates = Trainer._begin, Trainer._end, list[torch.Tensor]()

    def noted(self: Trainer) -> None:
        gates.append(self.model.backbone.body.vit.blocks[1].router.gate["labels"].detach().clone())

    monkeypatch.setattr(Trainer, "_begin", lambda self, number: (begin(self, number), noted(self)))
    monkeypatch.setattr(Trainer, "_end", lambda self: (end(self), noted(self)))
    settings = [
        *("tasks.objects=none", "tasks.labels.weight=0", "train.steps=1", "train.ema=0", "train.adapt.enabled=false"),
        *(
            "optimiser.name=sgd",
            "optimiser.lr=1",
            "optimiser.weight_decay=0",
            f"train.weigh_costs={str(weigh).lower()}",
        ),
    ]
    run.train(out=tmp_path / "run", recipe=SMALL, settings=settings)
    before, after = gates
    assert torch.equal(before, after) == weigh

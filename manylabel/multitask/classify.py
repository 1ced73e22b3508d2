"""Labels of an image, any number of them or exactly one, as a task among others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from manylabel import console
from manylabel.backbone.moe_vit import Routes
from manylabel.data.dataset import Batch
from manylabel.data.mix import mix_batch
from manylabel.labels import PRESENT, UNKNOWN, known, support
from manylabel.loss import LOSSES
from manylabel.metric import mean_average_precision
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.settings import task_of
from manylabel.multitask.work import Advance, Judgement, TaskWork
from manylabel.stop import unless_stopped
from manylabel.training.feed import PixelFeed
from manylabel.training.mixing_rule import mixing_allowed, unknown_is_negative


class ClassificationWork(TaskWork):
    """Multi-label or single-label classification with any of our heads on top."""

    def __init__(self, *given: Any, model: MultiTaskModel, seed: int, rank: int = 0, world: int = 1) -> None:
        super().__init__(*given)
        c = self.config
        self.task = task_of(c)
        matrix = self.table.matrix[self.parts.train]
        counts = {
            "positive_counts": torch.from_numpy(support(matrix)),
            "known_counts": torch.from_numpy(known(matrix).sum(axis=0)),
        }
        self.loss = LOSSES.build(c.loss, **counts)
        train, held_out, val = self.orders(seed, rank, world)
        preprocess, workers = model.preprocess(self.name), c.data.workers
        self.train_feed = PixelFeed(self.table, train, preprocess, augment=c.augment, workers=workers, seed=seed)
        self.held_out_feed = PixelFeed(self.table, held_out, preprocess, workers=self.held_out_workers)
        self.mixing = mixing_allowed(c.augment, c.loss, matrix, console.say)
        self.val_feed = PixelFeed(self.table, val, preprocess, workers=workers)

    def losses(
        self, model: MultiTaskModel, batch: Batch, device: torch.device, routes: Routes | None
    ) -> dict[str, Tensor]:
        labels = torch.from_numpy(self.table.matrix[batch.rows.numpy()])
        pixels, targets, told = batch.pixels, (labels == PRESENT).float(), labels != UNKNOWN
        if model.training and (self.mixing.mixup or self.mixing.cutmix):
            if unknown_is_negative(self.config.loss):
                told = torch.ones_like(told)
            rng = np.random.default_rng(int(torch.randint(2**31, ())))
            pixels, targets, told = mix_batch(pixels, targets, told, self.mixing, rng)  # type: ignore[assignment]
        logits = model.logits(pixels.to(device), self.name, routes)
        head = model.head(self.name)
        losses: dict[str, Tensor] = {"labels": self.loss.to(device)(logits, targets.to(device), told.to(device))}
        if head.extra_costs is not None:
            losses["extra"], head.extra_costs = self.loss.reduce(head.extra_costs, told.to(device)), None
        return losses

    def judge(self, model: MultiTaskModel, device: torch.device, advance: Advance = lambda _: None) -> Judgement:
        scored: list[tuple[int, np.ndarray]] = []
        for batch in unless_stopped(self.val_feed.batches(), self.stop):
            self.bad.add(batch.bad)
            if len(batch):
                logits = model.logits(batch.pixels.to(device), self.name)
                scored += zip(batch.rows.tolist(), self.task.probabilities(logits).cpu().numpy(), strict=True)
            advance(len(batch) + len(batch.bad))
        scored = self.gathered(scored)
        if not scored:
            raise self.none_readable()
        where, found = np.array([row for row, _ in scored]), np.stack([scores for _, scores in scored])
        matrix = self.table.matrix[where]
        values = {self.task.goal: self.task.value(found, matrix), "mAP": mean_average_precision(found, matrix)[0]}
        figures = {name: None if np.isnan(value) else 100 * value for name, value in values.items()}
        return Judgement(self.task.goal, figures[self.task.goal], figures, scores=found, rows=where)

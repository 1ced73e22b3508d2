"""What a run found out about one of its tasks, as plain values: results.json and details.json."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manylabel.bundle import TaskBundle
from manylabel.config import Config
from manylabel.data.table import Table
from manylabel.evaluation import describe, details, judge, never_trained_notes
from manylabel.expert_use import use_details, use_figures, use_of_labels
from manylabel.explain.shown_images import with_overlays
from manylabel.hard_section import hard_details
from manylabel.labels import never_trained
from manylabel.metric import METRICS, measured
from manylabel.metric import describe as describe_metrics
from manylabel.mixing import shares_of_labels
from manylabel.model import Model, TaskModel
from manylabel.task import Classification
from manylabel.training.scoring import Scored


def chosen_here(bundle: TaskBundle) -> str:
    of_what = " of the seen labels" if bundle.unseen is not None else ""
    official = " + ".join(bundle.config.data.parts.val)
    which = f"these images (the official {official})" if official else "these images"
    return f"the epoch was chosen by the {bundle.task.goal}{of_what} on {which}, which flatters it a little"


def chooses(config: Config, task: str) -> bool:
    """Whether this task's val images chose the weights."""
    t = config.train
    return t.keep == "best" and (len(config.tasks) == 1 or t.best_by in (task, "mean"))


@dataclass(frozen=True)
class Evaluated:
    """What the model said of a task's images, and what must be known to judge by it."""

    bundle: TaskBundle
    table: Table
    rows: np.ndarray  # of the table: the images that were to be evaluated
    scored: Scored
    split: str
    bad: int  # images that could not be read
    notes: Sequence[str]
    trained_on: Mapping[str, Any]  # which of the images the model was trained on
    fitted_here: bool  # the thresholds were fitted on these images

    @cached_property
    def judged(self) -> Table:
        """The images that were scored."""
        return self.table.subset(self.scored.rows)

    def results(self) -> dict[str, Any]:
        """results.json of a task with labels."""
        bundle, judged = self.bundle, self.judged
        data = {"name": judged.name, "split": self.split, "images": len(judged), "bad_images": self.bad}
        title = f"{bundle.config.head.name} on {bundle.run.backbone.name}"
        figures = {**self.trained_on, **self._label_figures()}
        return describe(title, data, model_facts(bundle.model, bundle.run), figures)

    def _label_figures(self) -> dict[str, Any]:
        bundle, scored, matrix = self.bundle, self.scored, self.judged.matrix
        assert isinstance(bundle.task, Classification)
        figures = judge(
            scored.scores,
            matrix,
            self.judged.labels,
            bundle.thresholds,
            fitted_here=self.fitted_here,
            hierarchy=bundle.hierarchy,
            task=bundle.task,
            unseen=bundle.unseen,
            vectors=bundle.vectors,
            training_images=bundle.training_images,
        )
        for label, use in zip(figures["labels"], use_of_labels(scored.use) or [], strict=False):
            label.update(use)
        for label, share in zip(figures["labels"], shares_of_labels(scored.shares, matrix) or [], strict=False):
            label.update(share)
        if scored.use is not None and scored.use.gates.capacity is not None:
            earlier = bundle.run.train.adapt.held_out is None  # versions that held out none decided by the val images
            where = "the val images" if earlier else "held-out training images"
            figures["notes"].append(f"how many shared experts a label may use was found by its loss on {where}")
        figures["notes"] += self.notes
        return figures | use_figures(scored.use)

    def details(self, history: list[dict[str, Any]]) -> dict[str, Any]:
        """What the report of a task with labels shows beside the figures, with maps of where the model looked."""
        judged, scored = self.judged, self.scored
        found = details(scored.scores, judged.matrix, judged.labels, judged.keys, judged.source, history)
        overlaid = with_overlays(self.bundle, judged.source, found)
        return overlaid | hard_details(judged, scored.scores) | use_details(scored.use, judged.labels)

    def summary(self, model: Model) -> dict[str, Any]:
        """Of a task, of any kind, among the several of a model."""
        bundle, table, name, task = self.bundle, self.table, self.bundle.name, self.bundle.task
        never = never_trained(bundle.training_images, bundle.unseen, len(table.labels))
        judged = task.judged(self.scored.evidence, table, never)
        figures, apart = measured(judged, task.figures), list(task.apart(judged))
        of_backbone, of_head = bundle.model.multiply_adds()
        return {
            "kind": task.kind,
            "data": table.name,
            "split": self.split,
            "images": len(self.rows),
            "judged": hashlib.sha256("\0".join(map(str, table.keys[self.rows])).encode()).hexdigest(),
            "bad_images": self.bad,
            "labels": len(table.labels),
            "notes": [*self.notes, *never_trained_notes(apart)],
            "never_trained": apart,
            "goal": task.goal,
            **({"loss_note": task.loss_note} if task.loss_note else {}),
            "value": figures[task.goal],
            "figures": figures,
            **describe_metrics(
                [metric for metric in METRICS.of(task.kind) if metric.name in figures],
                task.kind,
                {"labels_total": len(table.labels)},
                by_name=True,
            ),
            "head": bundle.config.head.name,
            "experts": model.experts(name),
            "active_parameters": model.active_parameters(name),
            "backbone_parameters": model.active_parameters(name, "backbone."),
            "gmacs": of_backbone / 1e9,
            "head_gmacs": of_head / 1e9,
            "image_size": bundle.preprocess.size,
            **self.trained_on,
        }


def model_facts(model: TaskModel, config: Config) -> dict[str, Any]:
    everything, trained = model.parameter_counts()
    task = config.tasks[model.name]
    return {
        "backbone": config.backbone.name,
        "task": task.kind,
        "neck": task.neck.name,
        "head": task.head.name,
        "loss": task.loss.name,
        "freeze": config.backbone.freeze,
        "image_size": model.preprocess.size,
        "parameters": everything,
        "trainable_parameters": trained,
        "gmacs": round(sum(model.multiply_adds()) / 1e9, 4),
    }

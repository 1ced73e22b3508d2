"""What a run found out about one of its tasks, as plain values: results.json and details.json."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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
    return f"the epoch was chosen by the {bundle.task.goal}{of_what} on these images, which flatters it a little"


def chooses(config: Config, task: str) -> bool:
    """Whether this task's val images chose the weights."""
    t = config.train
    return t.keep == "best" and (len(config.tasks) == 1 or t.best_by in (task, "mean"))


def label_figures(bundle: TaskBundle, judged: Table, scored: Scored, *, fitted_here: bool) -> dict[str, Any]:
    """All figures of a task with labels; `judged`: the images that were scored."""
    task = bundle.task
    assert isinstance(task, Classification)
    figures = judge(
        scored.scores,
        judged.matrix,
        judged.labels,
        bundle.thresholds,
        fitted_here=fitted_here,
        hierarchy=bundle.hierarchy,
        task=task,
        unseen=bundle.unseen,
        vectors=bundle.vectors,
        training_images=bundle.training_images,
    )
    for label, use in zip(figures["labels"], use_of_labels(scored.use) or [], strict=False):
        label.update(use)
    for label, share in zip(figures["labels"], shares_of_labels(scored.shares, judged.matrix) or [], strict=False):
        label.update(share)
    if scored.use is not None and scored.use.gates.capacity is not None:
        earlier = bundle.run.train.adapt.held_out is None  # versions that held out none decided by the val images
        where = "the val images" if earlier else "held-out training images"
        figures["notes"].append(f"how many shared experts a label may use was found by its loss on {where}")
    return figures | use_figures(scored.use)


def label_results(
    bundle: TaskBundle, judged: Table, figures: Mapping[str, Any], split: str, bad: int
) -> dict[str, Any]:
    """results.json of a task with labels, figures at their places."""
    data = {"name": judged.name, "split": split, "images": len(judged), "bad_images": bad}
    title = f"{bundle.config.head.name} on {bundle.run.backbone.name}"
    return describe(title, data, model_facts(bundle.model, bundle.run), dict(figures))


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


def details_of(bundle: TaskBundle, judged: Table, scored: Scored, history: list[dict[str, Any]]) -> dict[str, Any]:
    """What the report of a task with labels shows beside the figures, with maps of where the model looked."""
    found = details(scored.scores, judged.matrix, judged.labels, judged.keys, judged.source, history)
    overlaid = with_overlays(bundle, judged.source, found)
    return overlaid | hard_details(judged, scored.scores) | use_details(scored.use, judged.labels)


def summary(
    model: Model,
    bundle: TaskBundle,
    table: Table,
    scored: Scored,
    split: str,
    images: np.ndarray,
    bad: int,
    notes: list[str],
    trained_on: Mapping[str, Any],
) -> dict[str, Any]:
    """A task among several in results.json. `images`: rows of the table that were to be judged."""
    name, task = bundle.name, bundle.task
    never = never_trained(bundle.training_images, bundle.unseen, len(table.labels))
    judged = task.judged(scored.evidence, table, never)
    figures, apart = measured(judged, task.figures), list(task.apart(judged))
    of_backbone, of_head = bundle.model.multiply_adds()
    return {
        "kind": task.kind,
        "data": table.name,
        "split": split,
        "images": len(images),
        "judged": hashlib.sha256("\0".join(map(str, table.keys[images])).encode()).hexdigest(),
        "bad_images": bad,
        "labels": len(table.labels),
        "notes": [*notes, *never_trained_notes(apart)],
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
        **trained_on,
    }

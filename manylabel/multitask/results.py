"""What a run with several tasks found out, as plain values: results.json."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from torch.utils.flop_counter import FlopCounterMode

from manylabel.detect import Detector
from manylabel.evaluation import never_trained_notes
from manylabel.metric import METRICS, describe
from manylabel.multitask.model import MultiTaskModel, judging
from manylabel.multitask.work import Judgement, TaskWork
from manylabel.several_tasks import SCHEMA
from manylabel.storage.output import MADE_BY

KIND = "multi_task"


def describe_tasks(
    model: MultiTaskModel,
    works: Mapping[str, TaskWork],
    judged: Mapping[str, Judgement],
    created: str,
    trained_on: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """`trained_on`: of each task, how many of the judged images the run was trained on (run/trained_images.py)."""
    c, size = model.config, model.vit.size
    return {
        "schema": SCHEMA,
        "made_by": MADE_BY,
        "kind": KIND,
        "title": f"{', '.join(works)}: {_named(model)}",
        "created": created,
        "model": {
            "layers": size.layers,
            "width": size.width,
            "patch": c.vit.patch,
            "sharing": c.experts.sharing,
            "experts": c.experts.count if model.vit.sparse else 0,
            "sparse_layers": [number + 1 for number in model.vit.sparse],
            "router": c.experts.router,
            "adaptive": bool(c.selection.adaptive and model.vit.sparse),
            "parameters": sum(p.numel() for p in model.parameters()),
        },
        "tasks": {name: _task(model, name, work, judged[name]) | trained_on[name] for name, work in works.items()},
    }


def _named(model: MultiTaskModel) -> str:
    kinds = {"experts": "sparse experts", "dense": "dense", "taps": "task adaptive parameter sharing"}
    return f"vision transformer of {model.vit.size.layers} layers, {kinds[model.config.experts.sharing]}"


def _task(model: MultiTaskModel, name: str, work: TaskWork, judged: Judgement) -> dict[str, Any]:
    return {
        "kind": work.task.kind,
        "data": work.table.name,
        "split": "val",
        "images": len(work.parts.val),
        "judged": hashlib.sha256("\0".join(map(str, work.table.keys[work.parts.val])).encode()).hexdigest(),
        "bad_images": len(work.bad),
        "labels": len(work.table.labels),
        "notes": never_trained_notes(judged.never_trained),
        "never_trained": list(judged.never_trained),
        "goal": judged.goal,
        **({"loss_note": work.task.loss_note} if work.task.loss_note else {}),
        "value": judged.value,
        "figures": judged.figures,
        **describe(
            [metric for metric in METRICS.of(work.task.kind) if metric.name in judged.figures],
            work.task.kind,
            {"labels_total": len(work.table.labels)},
            by_name=True,
        ),
        "experts": model.k(name),
        "active_parameters": model.active_parameters(name),
        **dict(zip(("gmacs", "head_gmacs"), (n / 1e9 for n in multiply_adds(model, name)), strict=True)),
        "image_size": work.config.image_size,
    }


def multiply_adds(model: MultiTaskModel, task: str) -> tuple[int, int]:
    """Of (the transformer, the head) for one image of this task, with the experts it uses; torch counts two operations each.

    What a detector costs depends on what it finds: here as many proposals and masks as it takes at most.
    """
    side = model.config.tasks[task].image_size
    example, head = model.mean.new_zeros(1, 3, side, side), model.head(task)
    with judging(model):
        with FlopCounterMode(display=False) as of_transformer:
            features = model.features(example, task)
        with FlopCounterMode(display=False) as of_head:
            head.at_most(features.final, (side, side)) if isinstance(head, Detector) else head(features)
    return of_transformer.get_total_flops() // 2, of_head.get_total_flops() // 2

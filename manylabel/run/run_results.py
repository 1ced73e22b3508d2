"""results.json of a run with several tasks: what they share, and each of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from manylabel.core.task_results import SCHEMA
from manylabel.model import Model
from manylabel.storage.output import MADE_BY

KIND = "multi_task"


def describe_tasks(model: Model, tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """`tasks`: their summaries."""
    return {
        "schema": SCHEMA,
        "made_by": MADE_BY,
        "kind": KIND,
        "title": f"{', '.join(tasks)}: {_named(model)}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": shared_facts(model),
        "tasks": dict(tasks),
    }


def shared_facts(model: Model) -> dict[str, Any]:
    """What the tasks share."""
    config, body = model.config, model.backbone.body
    facts: dict[str, Any] = {
        "backbone": config.backbone.name,
        "freeze": config.backbone.freeze,
        "parameters": model.parameter_counts()[0],
        "experts": 0,
        "sparse_layers": [],
    }
    if not getattr(body, "per_task", False):
        return facts
    vit = body.vit
    return facts | {
        "layers": vit.size.layers,
        "width": vit.size.width,
        "patch": vit.patch,
        "sharing": body.experts.sharing,
        "experts": body.experts.count if vit.sparse else 0,
        "sparse_layers": [number + 1 for number in vit.sparse],
        "router": body.experts.router,
        "adaptive": bool(config.train.adapt.enabled and vit.sparse),
    }


def _named(model: Model) -> str:
    taps = "task adaptive parameter sharing"
    kinds = {"experts": "sparse experts", "dense": "dense", "taps": taps, "taps_released": f"{taps} as released"}
    facts = shared_facts(model)
    if "layers" not in facts:
        return str(facts["backbone"])
    return f"vision transformer of {facts['layers']} layers, {kinds[facts['sharing']]}"

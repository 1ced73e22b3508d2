"""Ways to explain, and which one suits a model."""

from __future__ import annotations

from manylabel.error import ConfigError
from manylabel.features import FINAL, find_stage
from manylabel.model import TaskModel
from manylabel.suggest import closest

ATTENTION = "attention"
CAMS = ("grad_cam", "grad_cam_pp", "eigen_cam")
METHODS = (ATTENTION, *CAMS)
AUTO = "auto"
BEST_CAM = "grad_cam"  # `manylabel bench explain` measures which points best
BEST_WITH_QUERIES = ATTENTION


def choose(model: TaskModel, method: str = AUTO, stage: str | None = None) -> tuple[str, tuple[str, ...]]:
    """(method, stages it looks at); `stage` None: the last one that matters, or all that the attention looks at."""
    if method != AUTO and method not in METHODS:
        raise ConfigError(f"there is no method {method!r}{closest(method, (AUTO, *METHODS))}")
    if stage is not None:
        stage = find_stage(stage, model.backbone.channels, "stage", model.backbone.name)
    if method == AUTO:
        method = suited(model)
        if method == ATTENTION and stage not in (None, *model.head.stages):
            method = BEST_CAM
    if method != ATTENTION:
        used = (*model.neck.stages, *model.head.stages)
        return method, (stage or (FINAL if FINAL in used else model.head.stages[-1]),)
    if model.head.query_of_label is None:
        raise ConfigError("this model's head has no attention to look at; use --method grad_cam (or auto)")
    if stage is not None and stage not in model.head.stages:
        raise ConfigError(f"the attention of this model looks at {', '.join(model.head.stages)}, not at {stage}")
    return method, tuple(model.head.stages) if stage is None else (stage,)


def suited(model: TaskModel) -> str:
    """Attention where each label has a query of its own; otherwise its map would be that of other labels, too."""
    query = model.head.query_of_label
    own = query is not None and len(query.unique()) == len(query)
    return BEST_WITH_QUERIES if own else BEST_CAM

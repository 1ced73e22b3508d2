"""What `manylabel.train` and `manylabel.evaluate` do: one question, or several tasks, as the recipe or the model says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manylabel import run
from manylabel.error import ConfigError
from manylabel.multitask.judging import evaluate_tasks
from manylabel.multitask.run import MultiTaskResult, train_tasks
from manylabel.run import RunResult
from manylabel.several_tasks import model_has_tasks, run_names_tasks


def train(
    data: str | Path | Mapping[str, Any] | None = None,
    *,
    out: str | Path,
    recipe: str | None = None,
    settings: Iterable[str] = (),
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **more: Any,
) -> RunResult | MultiTaskResult:
    """Train on `data` (a path, or the whole section as a dict) and leave bundle, results and report in `out`.

    `transfer`: lp (a linear head on a frozen backbone), rm (representation mixup on one), partial (the last layers, from
    cached features), ft (everything). Without it, without a recipe, and without the name of a head or neck or a word
    about what is frozen, recipe `laptop` is used; settings go on top of it.
    Other keywords are sections of the config: head="linear", loss={"name": "asl", "clip": 0}, train={"epochs": 3}.
    With a recipe that names tasks, `data` is for those that name none, and sections are set by `settings` only.
    """
    settings = list(settings)
    if not run_names_tasks(recipe, out, resume):
        asked = [] if seed is None else [f"train.seed={seed}"]
        return run.train(
            data, out=out, recipe=recipe, settings=[*settings, *asked], resume=resume, overwrite=overwrite, **more
        )
    if more:
        raise ConfigError(
            f"{', '.join(more)}: not for several tasks, whose recipe says such things for each of them; "
            'use settings=["tasks.NAME.…=…"]'
        )
    section = data if data is None or isinstance(data, Mapping) else {"path": str(data)}
    return train_tasks(
        out, recipe=recipe, data=section, settings=settings, seed=seed, resume=resume, overwrite=overwrite
    )


def evaluate(model: str | Path, *, data: str | None = None, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(results, details) of a run or bundle on `data` (default: what it was trained on), from the pixels on.

    `split` and `settings` for one question; `task` for one of several tasks, which have no details.
    """
    if model_has_tasks(model):
        return evaluate_tasks(model, data=data, **more), {}
    return run.evaluate(model, data=data, **more)

"""The end of a run: the chosen weights are evaluated, and bundle, results and reports are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manylabel import console
from manylabel.analysis.routing import describe_routing, watch
from manylabel.analysis.routing_patches import draw_patches
from manylabel.analysis.routing_probe import settling
from manylabel.bundle import Bundle, TaskBundle, save_bundle
from manylabel.config import Config, has_one_task
from manylabel.data.table import fingerprint
from manylabel.metric import Judged
from manylabel.mixing import total_share
from manylabel.report.tasks_page import write_tasks_report
from manylabel.run.data_paths import without_paths
from manylabel.run.folder import write_outputs
from manylabel.run.prepared import TaskData, task_folder
from manylabel.run.run_results import describe_tasks
from manylabel.run.task_results import Evaluated, chooses, chosen_here
from manylabel.run.trained_images import Overlap, overlap_facts
from manylabel.score_file import write_scores
from manylabel.storage.atomic import write_json
from manylabel.task import told_by_task
from manylabel.text import EMBEDDERS
from manylabel.training.loop import Trainer
from manylabel.training.processes import from_main
from manylabel.training.scoring import Scored
from manylabel.training.state import State


def finish(
    folder: Path,
    config: Config,
    trainer: Trainer,
    state: State,
    data: Mapping[str, TaskData],
    overlaps: Mapping[str, Overlap],
) -> dict[str, Any]:
    """The results."""
    _say_what_is_kept(config, trainer, state)
    total = sum(len(work.parts.val) for work in trainer.works.values())
    with console.counting("evaluating", total) as advance:
        scored = {name: trainer.evaluate(name, advance) for name in config.tasks}
    trained_on = from_main(
        {name: overlap_facts(overlaps.get(name), one.rows) for name, one in scored.items()}, trainer.accelerator
    )
    tasks = {name: _bundle(trainer, config, name, one, data[name]) for name, one in scored.items()}
    bundle = Bundle(trainer.model, without_paths(config), tasks)
    evaluated = {name: _evaluated(trainer, bundle, name, one, trained_on[name]) for name, one in scored.items()}
    if told_by_task(config):
        return _finish_several(folder, bundle, trainer, evaluated)
    (one,) = evaluated.values()
    return _finish_one(folder, bundle, trainer, one)


def _say_what_is_kept(config: Config, trainer: Trainer, state: State) -> None:
    phase = trainer.phase
    if phase.train.steps:
        kept = state.best_step if phase.best_by is not None else trainer.steps
        console.say(f"the weights of step {kept + phase.before} are kept")
        return
    epochs = config.train.epochs
    chosen = state.best_epoch if phase.best_by is not None else epochs
    console.say(f"the weights of epoch {chosen} are kept")
    if chosen == epochs and epochs < 50:
        console.say(f"it was still improving: more epochs may help, e.g. --epochs {2 * epochs}")


def _bundle(trainer: Trainer, config: Config, name: str, scored: Scored, data: TaskData) -> TaskBundle:
    work, path = trainer.works[name], trainer.model.task(name)
    judged: Any = work.task.judged(scored.evidence, work.table)
    if isinstance(judged, Judged):
        judged = replace(judged, unseen=data.knowledge.unseen)
    words = getattr(path.head, "vectors", None) is not None
    return TaskBundle(
        path,
        without_paths(config),
        work.table.labels,
        work.task.thresholds(judged),
        fitted_on=fingerprint(work.table.keys[scored.rows]),
        hierarchy=work.table.hierarchy,
        text_source=EMBEDDERS.build(work.config.text).source if words else "",
        activation=work.task.activation,
        training_images=work.training_images,
    )


def _evaluated(trainer: Trainer, bundle: Bundle, name: str, scored: Scored, trained_on: Mapping[str, Any]) -> Evaluated:
    work, own = trainer.works[name], bundle.tasks[name]
    notes = [chosen_here(own)] if chooses(bundle.config, name) else []
    bad = len(work.bad_images)
    return Evaluated(own, work.table, work.parts.val, scored, "val", bad, notes, trained_on, fitted_here=True)


def _finish_one(folder: Path, bundle: Bundle, trainer: Trainer, evaluated: Evaluated) -> dict[str, Any]:
    results = evaluated.results()
    if trainer.accelerator.is_main_process:
        save_bundle(folder / "bundle", bundle, results)
        _write(folder, evaluated, results, trainer)
    return results


def _write(folder: Path, evaluated: Evaluated, results: dict[str, Any], trainer: Trainer) -> None:
    """Results, details and scores of a task with labels."""
    folder.mkdir(parents=True, exist_ok=True)
    judged = evaluated.judged
    shares = evaluated.scored.shares
    alpha = np.clip(total_share(shares), 0, 1) if shares else None
    write_scores(folder, judged.keys, evaluated.scored.scores, judged.matrix, alpha)
    write_outputs(folder, results, evaluated.details(_history_of(evaluated.bundle.name, trainer)))


def _history_of(name: str, trainer: Trainer) -> list[dict[str, Any]]:
    """The evaluations of this task, as a run with it alone would have them; steps are counted in place of epochs."""
    if has_one_task(trainer.config):
        return trainer.history.rows
    rows = []
    for row in trainer.history.rows:
        judged = row.get("judged", {})
        if name in judged:
            plain = {key: row[key] for key in ("step", "rate", "seconds")}
            rows.append({"epoch": row["step"], **plain, "loss": row["loss"].get(name), **judged[name]})
    return rows


def _finish_several(
    folder: Path, bundle: Bundle, trainer: Trainer, evaluated: Mapping[str, Evaluated]
) -> dict[str, Any]:
    model, device = bundle.model, trainer.accelerator.device
    results = describe_tasks(model, {name: one.summary(model) for name, one in evaluated.items()})
    results["routing"] = describe_routing(watch(model, trainer.works, device), trainer.works)
    results["settling"] = settling(folder / "routing")
    if trainer.accelerator.is_main_process:
        for name, one in evaluated.items():
            if not one.bundle.task.finds_objects:
                _write(task_folder(folder, bundle.config, name), one, one.results(), trainer)
        draw_patches(model, trainer.works, folder / "routing", device)
        save_bundle(folder / "bundle", bundle, results)
        write_json(folder / "results.json", results)
        write_tasks_report(results, trainer.history.rows, folder / "report.html")
    return results

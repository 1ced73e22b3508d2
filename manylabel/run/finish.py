"""The end of a run: the chosen weights are evaluated, and bundle, results and reports are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from manylabel import console
from manylabel.analysis.routing import describe_routing, watch
from manylabel.analysis.routing_patches import draw_patches
from manylabel.analysis.routing_probe import settling
from manylabel.bundle import Bundle, TaskBundle, save_bundle
from manylabel.config import Config, has_one_task
from manylabel.data.table import fingerprint
from manylabel.metric import Judged
from manylabel.report.tasks_page import write_tasks_report
from manylabel.run.data_paths import without_paths
from manylabel.run.folder import write_outputs
from manylabel.run.prepared import TaskData, task_folder
from manylabel.run.run_results import describe_tasks
from manylabel.run.task_results import chooses, chosen_here, details_of, label_figures, label_results, summary
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
    accelerator = trainer.accelerator
    trained_on = from_main(
        {name: overlap_facts(overlaps.get(name), one.rows) for name, one in scored.items()}, accelerator
    )
    tasks = {name: _bundle(trainer, config, name, one, data[name]) for name, one in scored.items()}
    bundle = Bundle(trainer.model, without_paths(config), tasks)
    if not told_by_task(config):
        return _finish_one(folder, bundle, trainer, scored, trained_on)
    return _finish_several(folder, bundle, trainer, scored, trained_on)


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


def _finish_one(
    folder: Path,
    bundle: Bundle,
    trainer: Trainer,
    scored: Mapping[str, Scored],
    trained_on: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    (name,) = scored
    results, write = _of_labels(folder, bundle.tasks[name], trainer, scored[name], trained_on[name])
    if trainer.accelerator.is_main_process:
        save_bundle(folder / "bundle", bundle, results)
        write()
    return results


def _of_labels(
    folder: Path, bundle: TaskBundle, trainer: Trainer, scored: Scored, trained_on: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Results of a task with labels, and what writes them with their details and scores."""
    work = trainer.works[bundle.name]
    judged = work.table.subset(scored.rows)
    figures = label_figures(bundle, judged, scored, fitted_here=True)
    if chooses(bundle.run, bundle.name):
        figures["notes"].append(chosen_here(bundle))
    results = label_results(bundle, judged, {**trained_on, **figures}, "val", len(work.bad_images))

    def write() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_scores(folder, judged.keys, scored.scores, judged.matrix)
        history = _history_of(bundle.name, trainer)
        write_outputs(folder, results, details_of(bundle, judged, scored, history))

    return results, write


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
    folder: Path,
    bundle: Bundle,
    trainer: Trainer,
    scored: Mapping[str, Scored],
    trained_on: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    model, device = bundle.model, trainer.accelerator.device
    tasks = {}
    for name, one in scored.items():
        work = trainer.works[name]
        notes = [chosen_here(bundle.tasks[name])] if chooses(bundle.config, name) else []
        tasks[name] = summary(
            model,
            bundle.tasks[name],
            work.table,
            one,
            "val",
            work.parts.val,
            len(work.bad_images),
            notes,
            trained_on[name],
        )
    results = describe_tasks(model, tasks)
    results["routing"] = describe_routing(watch(model, trainer.works, device), trainer.works)
    results["settling"] = settling(folder / "routing")
    if trainer.accelerator.is_main_process:
        for name, one in scored.items():
            if not bundle.tasks[name].task.finds_objects:
                place = task_folder(folder, bundle.config, name)
                _of_labels(place, bundle.tasks[name], trainer, one, trained_on[name])[1]()
        draw_patches(model, trainer.works, folder / "routing", device)
        save_bundle(folder / "bundle", bundle, results)
        write_json(folder / "results.json", results)
        write_tasks_report(results, trainer.history.rows, folder / "report.html")
    return results

"""A run with several tasks, from data to a judged model that can be used.

<out>/config.yaml   run.json   metrics.jsonl   trained_images.safetensors   checkpoints/
      tasks/<task>/{split,bad_images}.csv   bundle/   results.json   report.html
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from accelerate.utils import set_seed

from manylabel import console
from manylabel.allocator import keep_memory
from manylabel.config import Config, MultiTaskConfig, TrainConfig, dump, load_recipe, load_yaml
from manylabel.data.bad_images import FILE_NAME as BAD_IMAGES
from manylabel.data.bad_images import BadImages
from manylabel.data.table import Table
from manylabel.error import CheckpointError, ConfigError, DataError
from manylabel.multitask.bundle import TaskFacts, save_multitask_bundle
from manylabel.multitask.loop import MultiTaskTrainer, StepProgress
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.patches import draw_patches
from manylabel.multitask.probe import settling
from manylabel.multitask.results import describe_tasks
from manylabel.multitask.routing import describe_routing, watch
from manylabel.multitask.settings import make_multitask_config
from manylabel.multitask.undrawn import with_drawn_masks_only
from manylabel.multitask.wording import in_words_of
from manylabel.multitask.work import Judgement, Parts, TaskWork
from manylabel.report.multitask_page import write_multitask_report
from manylabel.run.data_paths import without_paths
from manylabel.run.folder import machine_facts, write_split
from manylabel.run.owned import begin_run, check_folder, claimed
from manylabel.run.trained_images import Overlap, overlap_facts, remember_trained
from manylabel.run.training_table import training_table
from manylabel.runtime.fork import one_thread_in_children
from manylabel.stop import Stopped, StopRequest
from manylabel.storage.atomic import write_json
from manylabel.storage.folder_name import refuse_bytes
from manylabel.task import task_of
from manylabel.training.circumstances import circumstances
from manylabel.training.processes import asked_to_stop, from_main, make_accelerator


@dataclass(frozen=True)
class MultiTaskResult:
    """What a finished run left behind."""

    folder: Path
    results: dict[str, Any] = field(repr=False)

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"


def train_tasks(
    out: str | Path,
    *,
    recipe: str | Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    settings: Iterable[str] = (),
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> MultiTaskResult:
    """Train on all tasks that the recipe names and leave bundle, results and report in `out`."""
    keep_memory()
    one_thread_in_children()
    folder = Path(out)
    refuse_bytes(folder)
    if resume:
        config = _reopen(folder, {"--recipe": recipe, "data": data, "--set": list(settings), "--seed": seed})
    else:
        values = load_recipe(recipe) if isinstance(recipe, str) else recipe or {}
        config = make_multitask_config(values, settings, data, seed)
    paths = [path for task in config.tasks.values() for path in (task.data.path, task.data.images)]
    check = partial(check_folder, folder, paths, overwrite, resume)
    check()
    with StopRequest() as stop:
        return _Run(folder, config, stop, check).go(resume)


def _reopen(folder: Path, given: Mapping[str, Any]) -> MultiTaskConfig:
    again = [name for name, value in given.items() if value not in (None, [])]
    if again:
        raise ConfigError(f"a run with several tasks is resumed as it was begun; leave {', '.join(again)} out")
    stored = folder / "config.yaml"
    if not stored.is_file():
        raise CheckpointError(f"there is no run to resume in {folder} (no config.yaml)")
    return make_multitask_config(load_yaml(stored))


class _Run:
    """The steps of a run, in order."""

    def __init__(self, folder: Path, config: MultiTaskConfig, stop: StopRequest, check: Callable[[], None]) -> None:
        self.folder, self.config, self.stop, self.check = folder, config, stop, check

    def go(self, resume: bool) -> MultiTaskResult:
        self.accelerator = make_accelerator(project_dir=str(self.folder))
        console.QUIET = console.QUIET or not self.accelerator.is_main_process
        self.accelerator.wait_for_everyone()
        with claimed(self.folder, self.check, self.accelerator.is_main_process):
            return self._go(resume)

    def _go(self, resume: bool) -> MultiTaskResult:
        config = self.config
        splits: dict[str, dict[str, str]] = {}
        tables: dict[str, Table] = {}
        for name in config.tasks:
            with in_words_of(name):
                tables[name] = self._table(name, resume, splits)
        self.config = config = with_drawn_masks_only(config, tables)
        set_seed(config.train.seed)
        model = MultiTaskModel(config, {name: len(table.labels) for name, table in tables.items()})
        self._say_what(model)
        works: dict[str, TaskWork] = {}
        for name, table in tables.items():
            with in_words_of(name):
                works[name] = self._work(name, table, model, resume)
                works[name].begin(model)
        if self.accelerator.is_main_process:  # only now, when nothing is known to be wrong, is an older run replaced
            self._begin_folder(resume, tables, splits)
        overlaps = self._remember(tables)
        self.accelerator.wait_for_everyone()
        trainer = MultiTaskTrainer(
            config,
            model,
            works,
            self.folder,
            self.accelerator,
            self.stop,
            self._circumstances(tables),
            report=self._show,
            say=console.say,
        )
        with console.training(trainer.steps) as self._bar:
            trainer.fit(resume)
        with console.counting("judging", sum(len(work.parts.val) for work in works.values())) as advance:
            try:
                judged = trainer.judge(advance)
            except DataError:
                self._stop_if_asked()
                raise
        self._stop_if_asked()
        try:
            trained_on = from_main(
                {name: overlap_facts(overlaps.get(name), one.rows) for name, one in judged.items()}, self.accelerator
            )
            return self._finish(model, works, judged, trainer, trained_on)
        except RuntimeError:  # a signal to the whole process group has ended the workers
            self._stop_if_asked()
            raise

    def _stop_if_asked(self) -> None:
        """Between the last checkpoint and the files that a run leaves: half of them would be taken for whole."""
        if (asked := asked_to_stop(self.stop, self.accelerator)) is not None:
            again = f"manylabel train --resume --out {self.folder}"
            raise Stopped(f"stopped while judging; everything is saved. Go on with: {again}", asked)

    def _table(self, name: str, resume: bool, splits: dict[str, dict[str, str]]) -> Table:
        task = self.config.tasks[name]
        kind = task_of(task)
        config = Config(data=task.data, train=TrainConfig(seed=self.config.train.seed))
        prepared = training_table(config, kind, self.folder / "tasks" / name, resume)
        splits[name] = prepared.new_split
        return kind.usable(prepared.table)

    def _work(self, name: str, table: Table, model: MultiTaskModel, resume: bool) -> TaskWork:
        config, accelerator = self.config, self.accelerator
        task = config.tasks[name]
        adapts = config.selection.adaptive and bool(model.vit.sparse)
        parts = Parts.of(table, config.selection.held_out if adapts else 0.0, config.train.seed)
        listed = self.folder / "tasks" / name / BAD_IMAGES if accelerator.is_main_process else None
        bad = BadImages(len(table), task.data.max_bad_share, listed)
        if resume:
            bad.recall()
        work = TaskWork(name, task, table, parts, bad, self.stop, world=accelerator.num_processes)
        work.feed(model.preprocess(name), config.train.seed, accelerator.process_index)
        return work

    def _say_what(self, model: MultiTaskModel) -> None:
        everything = sum(p.numel() for p in model.parameters())
        size, e, names = model.vit.size, self.config.experts, ", ".join(self.config.tasks)
        layers = (
            f", {e.count} experts in layers {', '.join(str(i + 1) for i in model.vit.sparse)}"
            if model.vit.sparse
            else ""
        )
        console.say(
            f"vision transformer of {size.layers} layers, width {size.width}{layers}; tasks: {names}; "
            f"{everything / 1e6:.2f} M parameters"
        )

    def _begin_folder(self, resume: bool, tables: Mapping[str, Table], splits: Mapping[str, dict[str, str]]) -> None:
        if resume:
            return
        facts = {
            **machine_facts(self.accelerator),
            "tasks": {
                name: {"images": len(t), "labels": len(t.labels), "notes": list(t.notes)} for name, t in tables.items()
            },
        }
        begin_run(self.folder, facts, dump(self.config), resume)
        for name, split in splits.items():
            if split:
                (self.folder / "tasks" / name).mkdir(parents=True, exist_ok=True)
                write_split(self.folder / "tasks" / name, split)

    def _remember(self, tables: Mapping[str, Table]) -> dict[str, Overlap]:
        """Keep what this run is trained on, whichever task it is for: they share weights. The main process knows."""
        if not self.accelerator.is_main_process:
            return {}
        workers = {name: task.data.workers for name, task in self.config.tasks.items()}
        again = f"manylabel train --resume --out {self.folder}"
        return remember_trained(self.folder, {n: (t, workers[n]) for n, t in tables.items()}, self.stop, again)

    def _circumstances(self, tables: Mapping[str, Table]) -> dict[str, Any]:
        found = {name: circumstances(table, self.accelerator.num_processes) for name, table in tables.items()}
        digest = hashlib.sha256("\0".join(f"{name} {one['data']}" for name, one in found.items()).encode())
        return {**next(iter(found.values())), "data": digest.hexdigest()}

    def _show(self, p: StepProgress) -> None:
        losses = "  ".join(f"{name} {loss:.3f} (k {p.k[name]})" for name, loss in p.losses.items())
        self._bar(p.step, f"step {p.step}/{p.steps}  {losses}")

    def _finish(
        self,
        model: MultiTaskModel,
        works: Mapping[str, TaskWork],
        judged: Mapping[str, Judgement],
        trainer: MultiTaskTrainer,
        trained_on: Mapping[str, dict[str, Any]],
    ) -> MultiTaskResult:
        created = datetime.now(UTC).isoformat(timespec="seconds")
        results = describe_tasks(model, works, judged, created, trained_on)
        watched = watch(model, works, self.accelerator.device)
        results["routing"] = describe_routing(watched, works)
        results["settling"] = settling(self.folder / "routing")
        if self.accelerator.is_main_process:
            draw_patches(model, works, self.folder / "routing", self.accelerator.device)
            facts = {name: TaskFacts.of(work, judged[name]) for name, work in works.items()}
            save_multitask_bundle(self.folder / "bundle", model, without_paths(self.config), facts, results)
            write_json(self.folder / "results.json", results)
            write_multitask_report(results, trainer.history.rows, self.folder / "report.html")
        return MultiTaskResult(self.folder, results)

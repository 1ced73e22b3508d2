"""A run from data to a model that is evaluated and can be used: what `manylabel train` and `manylabel.train` do.

<out>/config.yaml   run.json   metrics.jsonl   bad_images.csv   split.csv   trained_images.safetensors   checkpoints/
      bundle/       results.json   details.json   scores.npz   report.html
With several tasks, what is of one of them is in tasks/NAME/: split.csv, bad_images.csv, results.json, scores.npz, …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

from manylabel import console
from manylabel.allocator import keep_memory
from manylabel.analysis.routing_probe import RoutingProbe
from manylabel.backbone import native_bfloat16
from manylabel.config import Config, dump, has_one_task, left_out_of_heads, make_config
from manylabel.error import ConfigError
from manylabel.model import Model
from manylabel.run.finish import finish
from manylabel.run.folder import machine_facts, reopen_folder, write_split
from manylabel.run.owned import begin_run, check_folder, claimed
from manylabel.run.prepared import TaskData, WorkMaker, read_data, task_folder
from manylabel.run.recipe_choice import choose_recipe
from manylabel.run.settings import resolve
from manylabel.run.trained_images import Overlap, remember_trained
from manylabel.runtime.fork import one_thread_in_children
from manylabel.stop import StopRequest
from manylabel.storage.folder_name import refuse_bytes
from manylabel.task import task_of
from manylabel.task.wording import in_words_of
from manylabel.training.loop import Progress, Trainer
from manylabel.training.processes import make_accelerator
from manylabel.training.work import Workplace

TRACKERS = ("tensorboard", "mlflow", "wandb")


@dataclass(frozen=True)
class RunResult:
    """What a finished run left behind."""

    folder: Path
    results: dict[str, Any] = field(repr=False)

    @property
    def mAP(self) -> float | None:
        """Of a run with one task; None for several, whose figures are in results["tasks"]."""
        return self.results.get("mAP")

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"


def train(
    data: str | Path | Mapping[str, Any] | None = None,
    *,
    out: str | Path,
    recipe: str | Mapping[str, Any] | None = None,
    transfer: str | None = None,
    settings: Iterable[str] = (),
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **sections: Any,
) -> RunResult:
    """Train on `data` (a path, or the whole section as a dict) and leave bundle, results and report in `out`.

    `transfer`: lp (a linear head on a frozen backbone), rm (representation mixup on one), partial (the last layers, from
    cached features), ft (everything). Without it, without a recipe, and without the name of a head or neck or a word
    about what is frozen, recipe `laptop` is used; settings go on top of it.
    Other keywords are sections of the config: head="linear", loss={"name": "asl", "clip": 0}, train={"epochs": 3}.
    With a recipe that names tasks, `data` is for those that name none.
    """
    keep_memory()
    one_thread_in_children()
    folder = Path(out)
    refuse_bytes(folder)
    given: dict[str, Any] = dict(sections)
    if data is not None:
        given["data"] = dict(data) if isinstance(data, Mapping) else {"path": str(data)}
    settings = [*settings, *([] if seed is None else [f"train.seed={seed}"])]
    if resume and transfer is not None:
        raise ConfigError("a run is resumed as it was begun; leave --transfer out")
    if resume:
        config = reopen_folder(folder, recipe, settings, given, resolve)
    else:
        chosen = choose_recipe(recipe, transfer, settings, given)
        config = resolve(make_config(chosen, settings, **given))
        for left_out in left_out_of_heads(chosen, config):
            console.warn(left_out)
        _check_length(config, settings, given)
    paths = [path for task in config.tasks.values() for path in (task.data.path, task.data.images)]
    check = partial(check_folder, folder, paths, overwrite, resume)
    check()
    with StopRequest() as stop:
        return _Run(folder, config, stop, check).go(resume)


def _check_length(config: Config, settings: Iterable[str], given: Mapping[str, Any]) -> None:
    """Epochs that somebody asks for are not passed over in silence where a recipe counts steps."""
    section = given.get("train")
    asked = isinstance(section, Mapping) and "epochs" in section
    if config.train.steps and (asked or any(one.partition("=")[0].strip() == "train.epochs" for one in settings)):
        raise ConfigError(
            f"train.steps={config.train.steps} says how long this run is, so train.epochs would not be read; set "
            "train.steps, or train.steps=0 to count epochs"
        )


class _Run:
    """The steps of a run, in order."""

    def __init__(self, folder: Path, config: Config, stop: StopRequest, check: Callable[[], None]) -> None:
        self.folder, self.config, self.stop = folder, config, stop
        self.check = check  # that the folder may be used

    def go(self, resume: bool) -> RunResult:
        self.accelerator = self._accelerator()
        console.QUIET = console.QUIET or not self.accelerator.is_main_process
        self.accelerator.wait_for_everyone()  # every process has looked at the folder before one writes to it
        with claimed(self.folder, self.check, self.accelerator.is_main_process):
            return self._go(resume)

    def _go(self, resume: bool) -> RunResult:
        self.config, data = read_data(self.config, self.folder, resume, self.stop)
        config = self.config
        set_seed(config.train.seed)
        labels = {name: len(one.table.labels) for name, one in data.items()}
        model = Model(config, labels, knowledge={name: one.knowledge for name, one in data.items()})
        model.check()
        self._say_what(model)
        maker = WorkMaker(config, data, model, self.folder, self.accelerator, self.stop, resume)
        self._prepare_heads(model, data, maker)
        phases = maker.phases()
        if self.accelerator.is_main_process:  # only now, when nothing is known to be wrong, is an older run replaced
            self._begin(data, resume)
        overlaps = self._remember(data)
        model.to(self.accelerator.device)
        self._bar = console.TrainingBar()
        place = Workplace(self.folder, self.accelerator, self.stop, self._show, console.say, self._bar.close)
        trainer = Trainer(config, phases, place, RoutingProbe(self.folder / "routing"))
        with self._bar:
            state = trainer.fit(resume)
        results = finish(self.folder, config, trainer, state, data, overlaps)
        self.accelerator.end_training()
        return RunResult(self.folder, results)

    def _say_what(self, model: Model) -> None:
        config, (everything, trained) = self.config, model.parameter_counts()
        b, heads = config.backbone, ", ".join(dict.fromkeys(task.head.name for task in config.tasks.values()))
        if b.weights == "none" and b.freeze == "frozen":
            console.warn("the backbone is frozen with random weights: only its shape helps")
        tasks = "" if has_one_task(config) else f"; tasks: {', '.join(config.tasks)}"
        console.say(
            f"{b.name} ({b.freeze}) + {heads}: {everything / 1e6:.2f} M parameters, {trained / 1e6:.3f} M trained{tasks}"
            f"{_mixed_in(model)}"
        )

    def _prepare_heads(self, model: Model, data: Mapping[str, TaskData], maker: WorkMaker) -> None:
        """What is wrong with loss or objects is found, and a fresh head hears what it may know of its images."""
        for name, one in data.items():
            with in_words_of(name, not has_one_task(self.config)):
                task = self.config.tasks[name]
                task_of(task).prepare(model.heads[name], task, one.table, maker.parts[name].train)

    def _accelerator(self) -> Accelerator:
        trackers = list(self.config.train.trackers)
        for name in trackers:
            if name not in TRACKERS:
                raise ConfigError(f"train.trackers: {name!r} is none of {', '.join(TRACKERS)}")
            try:
                __import__(name)
            except ImportError as error:
                raise ConfigError(f'{name} is not installed: pip install "manylabel[{name}]"') from error
        accelerator = make_accelerator(
            mixed_precision=precision(self.config), log_with=trackers or None, project_dir=str(self.folder)
        )
        if trackers:
            accelerator.init_trackers("manylabel")
        return accelerator

    def _begin(self, data: Mapping[str, TaskData], resume: bool) -> None:
        """The first files of a run: only now is it sure that it can begin."""
        known = {
            name: {"images": len(one.table), "labels": len(one.table.labels), "notes": list(one.table.notes)}
            for name, one in data.items()
        }
        facts = next(iter(known.values())) if has_one_task(self.config) else {"tasks": known}
        begin_run(self.folder, {**machine_facts(self.accelerator), **facts}, dump(self.config), resume)
        for name, one in data.items():
            if one.new_split:
                place = task_folder(self.folder, self.config, name)
                place.mkdir(parents=True, exist_ok=True)
                write_split(place, one.new_split)

    def _remember(self, data: Mapping[str, TaskData]) -> dict[str, Overlap]:
        """Keep what this run is trained on, whichever task it is for: they share weights. Which of the val images are the
        same, as the main process knows."""
        if not self.accelerator.is_main_process:
            return {}
        again = f"manylabel train --resume --out {self.folder}"
        tables = {name: (one.table, self.config.tasks[name].data.workers) for name, one in data.items()}
        return remember_trained(self.folder, tables, self.stop, again)

    def _show(self, p: Progress) -> None:
        losses = "  ".join(self._shown_loss(p, name, loss) for name, loss in p.losses.items())
        value = f"{p.goal} {p.value:.2f}  " if p.value is not None else ""
        where = f"step {p.step}/{p.steps}" if p.epoch is None else f"epoch {min(p.epoch + 1, p.epochs)}/{p.epochs}"
        self._bar.show(p.step, p.steps, f"{where}  {losses}  {value}rate {p.lr:.1e}")

    def _shown_loss(self, p: Progress, name: str, loss: float) -> str:
        whose = "loss" if has_one_task(self.config) else name
        return f"{whose} {loss:.4f}" + (f" (k {p.k[name]})" if name in p.k else "")


def _mixed_in(model: Model) -> str:
    """The earlier stages that necks read, as the backbone has them."""
    read = {
        stage: model.backbone.reader.strides.get(stage)
        for name in model.tasks
        for stage in model.task(name).neck.stages
    }
    if not read:
        return ""
    return "; mixed in: " + ", ".join(f"{s} (stride {stride})" if stride else s for s, stride in read.items())


def precision(config: Config) -> str:
    """What train.amp=auto means here: bfloat16 where the device computes with it by itself and there is much to do."""
    if config.train.amp != "auto":
        return config.train.amp
    able = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else native_bfloat16()
    return "bf16" if able and config.backbone.freeze != "frozen" else "no"

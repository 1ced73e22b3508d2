"""Small runs with fixed seeds, and what each of them did: golden_runs.py OUT.json FOLDER [NAME …].

golden.py starts this file once for each of two trees, each with its own, so that every tree speaks its own settings. The
names of runs and facts stay what they are: by them the two are compared.
"""

from __future__ import annotations

import copy
import json
import os
import runpy
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from golden_facts import Facts, leaves, run_facts
from golden_photos import draw_labelled, draw_one_each, draw_shown, write_words
from golden_process import WAIT, Answer, Commands

SMALL = runpy.run_path(str(Path(__file__).parents[1] / "small_tasks.py"))["SMALL"]  # of this script's own tree
TINY = ["backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64", "data.workers=0"]
SCENES = ["data.scenes.train=40", "data.scenes.val=20", "data.scenes.size=64", "data.scenes.unknown=0.1"]
LOOP = ["train.batch_size=8", "train.seed=3", "optimiser.lr=0.01"]
QUERIES = ["head.dim=16", "head.hidden=24", "head.dropout=0.2"]
LAYERS = ["head.heads=2", "head.encoder_layers=1", "head.decoder_layers=1", "head.layer_dims=[12, 8]"]
FEW_UNKNOWN = "data.scenes.unknown=0.03"  # with more of them images are not mixed
ASL = ["loss.name=asl", "loss.gamma_negative=3", "loss.clip=0.05"]
FULL = [
    FEW_UNKNOWN,
    "head.name=linear",
    "head.attention=0.5",
    "backbone.freeze=full",
    "augment.flip=true",
    "augment.random_crop=0.5",
    "augment.colour=0.3",
    "augment.mixup=0.4",
    "train.ema=0.9",
    "train.clip=1",
    "train.accumulate=2",
    "optimiser.layer_decay=0.8",
]
Settings = dict[str, Any]


@dataclass(frozen=True)
class Golden:
    """One run. With a recipe it is of several tasks, and `tasks` names those that photos are predicted with."""

    settings: tuple[str, ...] = ()
    data: str = "scenes"
    recipe: Settings | None = None
    tasks: tuple[str, ...] = ()
    stopped: bool = False  # after its first line of metrics.jsonl, and taken up again
    processes: int = 1


def one(*settings: str, **more: Any) -> Golden:
    """A run's own settings take the place of those that all have."""
    every = (*TINY, *(SCENES if more.get("data", "scenes") == "scenes" else ()), *LOOP, *settings)
    return Golden(tuple({setting.partition("=")[0]: setting for setting in every}.values()), **more)


def several(changes: Settings, **more: Any) -> Golden:
    """tests/small_tasks.py with these sections on top."""
    recipe = copy.deepcopy(SMALL)
    for section, values in changes.items():
        recipe[section] = {**recipe.get(section, {}), **values}
    return Golden(recipe=recipe, tasks=tuple(recipe["tasks"]), **more)


GROWTH = {"adapt": {"enabled": True, "every": 1, "patience": 2, "min_decrease": 0.5, "held_out": 0.2}}
FIXED = {"adapt": {"enabled": False}}
TWO = {**SMALL["backbone"], "options": {**SMALL["backbone"]["options"], "k": 2}}
RUNS: dict[str, Golden] = {
    "linear": one("head.name=linear", "backbone.freeze=frozen", "head.dropout=0.1", "train.epochs=3"),
    "ml_decoder": one(
        "head.name=ml_decoder", "head.heads=4", *QUERIES, *ASL, "augment.flip=true", "train.views=1", "train.epochs=3"
    ),
    "ml_decoder_groups": one(
        "head.name=ml_decoder",
        "head.heads=4",
        *QUERIES,
        "head.groups=7",
        "head.grouping=cooccurrence",
        "loss.name=focal",
        "loss.unknown=selective",
        "train.epochs=3",
    ),
    "query2label": one("head.name=query2label", *QUERIES, *LAYERS[:3], "schedule.name=cosine", "train.epochs=3"),
    "hsq": one("head.name=hsq", *QUERIES, *LAYERS, "head.shared_experts=3", "train.ema=0.8", "train.epochs=3"),
    "hsq_adaptive": one(
        "head.name=hsq",
        *QUERIES,
        *LAYERS,
        "head.shared_experts=3",
        "head.adaptive=true",
        "head.adaptive_patience=1",
        "train.keep=last",
        "train.epochs=8",
    ),
    "hsq_linear": one("head.name=hsq_linear", *QUERIES, *LAYERS, "train.epochs=3"),
    "rm": one(
        "neck.name=rm", "neck.stages=[stage-2]", "head.name=linear", "head.attention=0.5", *ASL, "train.epochs=3"
    ),
    "partial": one(
        "head.name=linear",
        FEW_UNKNOWN,
        "backbone.freeze=partial",
        "augment.flip=true",
        "augment.mixup=0.3",
        "train.views=1",
        "train.cache_dtype=float16",
        "train.epochs=2",
    ),
    "full": one(*FULL, "train.epochs=2"),
    "full_bf16": one(
        FEW_UNKNOWN,
        "backbone.freeze=full",
        "train.amp=bf16",
        "train.head_first=1",
        "augment.cutmix=1",
        "train.epochs=1",
    ),
    "single_label": one(
        "kind=single_label", "head.name=linear", "optimiser.name=sgd", "train.epochs=3", data="one_each"
    ),
    "hierarchy": one("head.name=linear", "data.labels=photos/hierarchy.yaml", "train.epochs=3", data="photos"),
    "zero_shot": one(
        "head.name=ml_decoder",
        "head.heads=4",
        *QUERIES,
        "head.query=text",
        "head.pooling=shared",
        "head.random_queries=2",
        "head.query_noise=0.1",
        "text.name=file",
        "text.path=words.txt",
        "zero_shot.unseen=white",
        "zero_shot.in_training=hide",
        "train.epochs=3",
        data="photos",
    ),
    "tasks": several({"backbone": TWO, "train": {**FIXED, "steps": 6, "evaluate_every": 4, "ema": 0.9}}),
    "tasks_adaptive": several({"train": {**GROWTH, "steps": 10, "amp": "bf16", "first": "labels", "first_steps": 3}}),
    "resumed": one(*FULL, "train.epochs=8", "train.checkpoint_minutes=0", stopped=True),
    "resumed_tasks": several({"train": {**GROWTH, "steps": 30, "ema": 0.9, "checkpoint_minutes": 0}}, stopped=True),
    "two_processes": one(*FULL, "train.epochs=2", processes=2),
    "two_processes_tasks": several({"train": {**GROWTH, "steps": 6, "ema": 0.9}}, processes=2),
}


def main() -> None:
    out, folder, chosen = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(RUNS)
    draw_labelled(folder / "photos", 40)
    draw_one_each(folder / "one_each", 10)
    write_words(folder / "words.txt")
    draw_shown(folder / "shown")
    found: dict[str, Any] = {}
    for name in chosen:
        if name in RUNS:
            started = time.monotonic()
            found[name] = _look(name, RUNS[name], folder)
            seconds, problems = time.monotonic() - started, found[name]["problems"]
            print(f"{name}: {'; '.join(problems) or len(found[name]['facts'])} ({seconds:.0f} s)", flush=True)
    package = json.loads(
        subprocess.run(
            [sys.executable, "-c", "import json, manylabel; print(json.dumps(manylabel.__file__))"],
            cwd=folder,
            capture_output=True,
            check=True,
        ).stdout
    )
    out.write_text(json.dumps({"package": package, "runs": found}), encoding="utf-8")


def _look(name: str, golden: Golden, folder: Path) -> dict[str, Any]:
    """The run, judged again, asked about photos: {"facts", "names" of tensors, "problems"}."""
    run, logs = Path("runs") / name, folder / "logs" / name
    problems, answers = _train(name, golden, folder, logs)
    facts: Facts = {}
    names: dict[str, str] = {}
    if not problems:
        judged = Path("judged") / f"{name}.json"
        (folder / "judged").mkdir(exist_ok=True)
        shown = [f"shown/{path.name}" for path in sorted((folder / "shown").iterdir())]
        asked = [["--task", task, *(["--score", "0"] if task == "objects" else [])] for task in golden.tasks] or [[]]
        commands = [["evaluate", str(run), "--json", str(judged)]]
        commands += [["predict", str(run), *shown, "--json", *more] for more in asked]
        answers = Commands(commands, folder, logs / "use").answers()
        problems = [answer.problem() for answer in answers if answer.code]
    if not problems:
        facts, names = run_facts(folder / run)
        facts |= leaves(json.loads((folder / judged).read_text(encoding="utf-8")), "evaluate")
        for answer, task in zip(answers[1:], golden.tasks or ("",), strict=True):
            facts |= leaves(json.loads(answer.out), f"predict/{task}" if task else "predict")
        if golden.stopped:
            facts["resumed"] = "went on"
    return {"facts": facts, "names": names, "problems": problems}


def _train(name: str, golden: Golden, folder: Path, logs: Path) -> tuple[list[str], list[Answer]]:
    arguments = ["train", "--out", f"runs/{name}"]
    if golden.recipe is None:
        arguments += [golden.data, *(part for setting in golden.settings for part in ("--set", setting))]
    else:
        recipe = folder / f"{name}.yaml"
        recipe.write_text(yaml.safe_dump(golden.recipe), encoding="utf-8")
        arguments += ["--recipe", recipe.name]
    if golden.processes > 1:
        return _in_processes(golden.processes, arguments, folder), []
    if golden.stopped:
        return _stopped_and_resumed(arguments, folder, folder / "runs" / name, logs), []
    answers = Commands([arguments], folder, logs / "train").answers()
    return [answer.problem() for answer in answers if answer.code], answers


def _in_processes(count: int, arguments: list[str], folder: Path) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true"}
    command = [*launcher, "-m", "manylabel", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        late = threading.Timer(WAIT, process.terminate)  # the launcher then ends its processes
        late.start()
        out, errors = process.communicate()
        late.cancel()
    return [Answer(tuple(arguments), process.returncode, out, errors).problem()] if process.returncode else []


def _stopped_and_resumed(arguments: list[str], folder: Path, run: Path, logs: Path) -> list[str]:
    """What went wrong. The first line of metrics.jsonl tells, by its seconds, whether the run went on or began anew."""
    history = run / "metrics.jsonl"
    begun = Commands([arguments], folder, logs / "begun")
    begun.stop_when(lambda: history.exists() and history.read_bytes().count(b"\n") > 0)
    (stopped,) = begun.answers()
    if stopped.code != 128 + 15:
        return [f"it was to be stopped: {stopped.problem()}"]
    before = history.read_text(encoding="utf-8").splitlines()
    (resumed,) = Commands([["train", "--resume", "--out", f"runs/{run.name}"]], folder, logs / "resumed").answers()
    if resumed.code:
        return [resumed.problem()]
    after = history.read_text(encoding="utf-8").splitlines()
    if len(after) <= len(before) or after[0] != before[0]:
        return ["it began anew where it should have gone on"]
    return []


if __name__ == "__main__":
    main()

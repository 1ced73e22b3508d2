"""Makes kept/: small runs of all kinds as this version leaves them, photos, and what its models say of these.

    python tests/net/keep.py            # all of it, anew
    python tests/net/keep.py NAME …     # these runs of one task beside what is kept, which stays as it is

Run by hand, when there is something new to keep. Later versions must read these files, resume the stopped runs, and say
the same of the photos (test_kept.py).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml
from golden_facts import tensors
from golden_photos import draw_labelled, draw_one_each, draw_shown, write_words
from golden_process import Answer, Commands
from kept_runs import (
    ARCHIVE,
    BACKBONE,
    EXPECTED,
    KEPT,
    MEGABYTES,
    ONE_TASK,
    OTHER_LABELS,
    PHOTOS,
    PLACE,
    SCENES,
    STOPPED,
    TINY,
    pack,
    several_tasks,
    unpack,
)
from safetensors.torch import load_file, save_file

import manylabel as ml

STEPS, STOPPED_STEPS = 240, 60
APART = 3e-5  # scores of a label's images with it and without it: nearer ones could change places elsewhere
TELLING = 0.02  # how much a model's scores must differ between photos
LEFT_OUT = ("report.html", "figures", "routing/patches-*.png")  # large, and made anew by `manylabel report`

WITH_CHECKPOINT = (
    "linear",
    "single_label",
    "zero_shot",
    "stopped",
    "stopped_tasks",
)  # the newest, from which a run goes on


def main() -> None:
    with TemporaryDirectory(prefix="manylabel-keep-") as scratch:
        work = Path(scratch).resolve() / "work"
        work.mkdir()
        os.environ |= {"MANYLABEL_CACHE": f"{scratch}/cache", "OMP_NUM_THREADS": "1", "COLUMNS": "160", "NO_COLOR": "1"}
        added = sys.argv[1:]
        expected = _add(work, added) if added else _make(work)
        _check(work, expected)
        _clean(work)
        pack(work, ARCHIVE)
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    sizes = {path.relative_to(KEPT).as_posix(): path.stat().st_size for path in KEPT.rglob("*") if path.is_file()}
    print(*(f"{size:9} {name}" for name, size in sizes.items()), sep="\n")
    if sum(sizes.values()) > MEGABYTES * 1e6:
        sys.exit(f"{sum(sizes.values()) / 1e6:.2f} MB are more than {MEGABYTES} MB")


# --- making -------------------------------------------------------------------------------------------------------


def _make(work: Path) -> dict[str, Any]:
    draw_labelled(work / "photos", 40)
    draw_one_each(work / "one_each", 10)
    write_words(work / "words.txt")
    _train(work, ONE_TASK)
    _train_others(work)
    (work / "outputs").mkdir()
    _judge(work, [*ONE_TASK, "tasks"])
    _outputs(work)
    PHOTOS.mkdir(parents=True, exist_ok=True)
    draw_shown(PHOTOS)
    return {
        "one task": {name: _one_task(work, name) for name in ONE_TASK},
        "several tasks": {"tasks": _several_tasks(work / "runs" / "tasks")},
        "stopped": {name: _stopped(work, name) for name in ("stopped", "stopped_tasks")},
    }


def _add(work: Path, names: list[str]) -> dict[str, Any]:
    unpack(ARCHIVE, work)
    _train(work, names)
    _judge(work, names)
    expected: dict[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    expected["one task"] |= {name: _one_task(work, name) for name in names}
    return expected


def _train(work: Path, names: Iterable[str]) -> None:
    for name in names:
        data, *settings = ONE_TASK[name]
        _done(work, [["train", data, "--out", f"runs/{name}", *_set([*TINY, *settings])]])
        if name == "full":
            _write_backbone(work / "runs" / name, work / BACKBONE)


def _train_others(work: Path) -> None:
    recipes = {"tasks": STEPS, "stopped_tasks": STOPPED_STEPS}
    for name, steps in recipes.items():
        (work.parent / f"{name}.yaml").write_text(yaml.safe_dump(several_tasks(steps)), encoding="utf-8")
    _done(work, [["train", "--recipe", "../tasks.yaml", "--out", "runs/tasks"]])
    _stop(work, ["train", "scenes", "--out", "runs/stopped", *_set([*TINY, *SCENES, *STOPPED])], "images", 4)
    _stop(work, ["train", "--recipe", "../stopped_tasks.yaml", "--out", "runs/stopped_tasks"], "step", 8)


def _write_backbone(run: Path, path: Path) -> None:
    """The backbone of a run as a file that other runs begin with."""
    stored = load_file(run / "bundle" / "weights.safetensors")
    body = {name.removeprefix("backbone.body."): tensor for name, tensor in stored.items()}
    save_file({name: tensor for name, tensor in body.items() if not name.startswith(("head.", "backbone."))}, path)


def _set(settings: Iterable[str]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def _done(work: Path, commands: list[list[str]]) -> list[Answer]:
    answers = Commands(commands, work, work.parent / "logs").answers()
    wrong = [answer.problem() for answer in answers if answer.code]
    if wrong:
        sys.exit(wrong[0])
    for answer in answers:
        print(f"manylabel {' '.join(answer.arguments[:4])}", flush=True)
    return answers


def _stop(work: Path, command: list[str], place: str, lines: int) -> None:
    """A run that was stopped after so many lines of metrics.jsonl, where its position tells of a `place`: the images of an
    epoch that is not whole, or the step."""
    run = work / command[command.index("--out") + 1]
    history = run / "metrics.jsonl"
    for _ in range(10):
        shutil.rmtree(run, ignore_errors=True)
        begun = Commands([command], work, work.parent / "logs")
        begun.stop_when(lambda: history.exists() and history.read_bytes().count(b"\n") >= lines)
        (answer,) = begun.answers()
        if answer.code != 128 + 15:
            sys.exit(f"it was to be stopped: {answer.problem()}")
        if _position(run)[place]:
            print(f"{run.name} was stopped at {_position(run)}", flush=True)
            return
    sys.exit(f"{run.name} could not be stopped in the middle of an epoch")


def _position(run: Path) -> dict[str, Any]:
    newest = max(run.glob("checkpoints/step-*.safetensors"))
    stored = newest.read_bytes()
    header = json.loads(stored[8 : 8 + int.from_bytes(stored[:8], "little")])
    position: dict[str, Any] = json.loads(header["__metadata__"]["values"])["position"]
    return position


def _judge(work: Path, names: Iterable[str]) -> None:
    _done(work, [["evaluate", f"runs/{name}", "--json", f"outputs/evaluate-{name}.json"] for name in names])


def _outputs(work: Path) -> None:
    """What commands leave beside a run, each as a file."""
    _done(work, [["data", "check", "photos", "--json", "outputs/data-check.json"]])
    _done(work, [["compare", "runs/linear", "runs/rm", "--resamples", "200", "--out", "../comparison"]])
    for name in ("comparison.json", "labels.csv"):
        shutil.copy(work.parent / "comparison" / name, work / "outputs" / name)
    (hard,) = _done(work, [["hard", "runs/linear", "--json", "--resamples", "200"]])
    (work / "outputs" / "hard.json").write_text(hard.out, encoding="utf-8")


# --- what is expected of later versions ----------------------------------------------------------------------------


def _one_task(work: Path, name: str) -> dict[str, Any]:
    bundle, predictor = ml.load_bundle(work / "runs" / name), ml.Predictor.load(work / "runs" / name)
    facts = {"labels": list(bundle.labels), "thresholds": bundle.thresholds.tolist(), "photos": _scores(predictor)}
    if name == "zero_shot":
        other = predictor.for_labels(OTHER_LABELS, text_file=str(work / "words.txt"))
        facts["other labels"] = _scores(other)
    return facts


def _scores(predictor: ml.Predictor) -> dict[str, dict[str, float]]:
    photos = sorted(PHOTOS.iterdir())
    return {
        path.name: {one.label: one.score for one in found.labels}
        for path, found in zip(photos, predictor.predict(photos), strict=True)
    }


def _several_tasks(run: Path) -> dict[str, Any]:
    predictor, photos = ml.Predictor.load(run), sorted(PHOTOS.iterdir())
    labels = predictor.predict(photos, "labels")
    objects: Any = predictor.predict(photos, "objects", score=0.0)
    return {
        "labels": {
            path.name: {one.label: [one.score, one.threshold] for one in found.labels}
            for path, found in zip(photos, labels, strict=True)
        },
        "objects": {
            path.name: [
                {"label": one.label, "score": one.score, "box": list(one.box), "pixels": int(one.pixels().sum())}
                for one in found.objects
            ]
            for path, found in zip(photos, objects, strict=True)
        },
    }


def _stopped(work: Path, name: str) -> dict[str, Any]:
    """How far a stopped run got, and what it does when this version goes on with it."""
    run, copy = work / "runs" / name, work.parent / "resumed" / name
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    shutil.copytree(run, copy)
    _done(work, [["train", "--resume", "--out", str(copy)]])
    after = [json.loads(line) for line in (copy / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    if after[0] != rows[0] or len(after) <= len(rows):
        sys.exit(f"{name} began anew when it was resumed")
    return {"lines": len(rows), "finished": [{key: row[key] for key in ("epoch", "step", "loss")} for row in after]}


# --- checks -------------------------------------------------------------------------------------------------------


def _check(work: Path, expected: dict[str, Any]) -> None:
    """That these files can tell right from wrong, here and on other machines."""
    problems = []
    for name, facts in expected["one task"].items():
        scores = np.array([[photo[label] for label in facts["labels"]] for photo in facts["photos"].values()])
        spread = float(np.ptp(scores, axis=0).max())
        gap, where = _nearest(work / "runs" / name, facts["labels"])
        print(f"{name}: scores differ by up to {spread:.3f} between photos; nearest of {where}: {gap:.1e}")
        if spread < TELLING:
            problems.append(f"{name}: its scores hardly depend on the photo ({spread:.1e})")
        if gap < APART:
            problems.append(f"{name}: scores of {where} are too near each other ({gap:.1e})")
    backbones = {name: _backbone(work / "runs" / name) for name in expected["one task"]}
    different = [name for name, found in backbones.items() if found != backbones["linear"]]
    if different != ["partial"]:
        problems.append(f"backbones that are not that of linear: {', '.join(different)}")
    print(f"experts in use: {_experts(work / 'runs' / 'hsq')}")
    if problems:
        sys.exit("\n".join(problems))


def _nearest(run: Path, labels: list[str]) -> tuple[float, str]:
    """The smallest difference between the scores of an image with a label and one without it, and which label."""
    with np.load(run / "scores.npz", allow_pickle=False) as stored:
        scores, matrix = stored["scores"].astype(float), stored["matrix"]
    gaps = {}
    for i, label in enumerate(labels):
        pairs = scores[matrix[:, i] == 1, i][:, None] - scores[matrix[:, i] == 0, i][None]
        gaps[label] = float(np.abs(pairs).min()) if pairs.size else np.inf
    label = min(gaps, key=lambda name: gaps[name])
    return gaps[label], label


def _backbone(run: Path) -> dict[str, bytes]:
    found = tensors(run / "bundle" / "weights.safetensors")
    return {name: content for name, (_, _, content) in found.items() if name.startswith("backbone.")}


def _experts(run: Path) -> list[int]:
    """k of every label, in the buffers of the adaptive head."""
    stored = tensors(run / "bundle" / "weights.safetensors")
    (name,) = (name for name in stored if name.endswith(".k"))
    return [int(k) for k in np.frombuffer(stored[name][2], np.int64)]


def _clean(work: Path) -> None:
    """Without what is large, and without a word about this machine."""
    for pattern in LEFT_OUT:
        for path in work.glob(f"runs/*/{pattern}"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for checkpoints in work.glob("runs/*/checkpoints"):  # of most finished runs best.safetensors is enough
        found = sorted(checkpoints.glob("step-*.safetensors"))
        for path in found[:-1] if checkpoints.parent.name in WITH_CHECKPOINT else found:
            path.unlink()
            path.with_suffix(".json").unlink()
    for settings in work.glob("runs/*/config.yaml"):
        text = settings.read_text(encoding="utf-8")
        settings.write_text(text.replace(str(work), PLACE), encoding="utf-8")
    places = [str(work), str(Path.home()), str(Path(__file__).parents[2]), sys.prefix]
    host = [socket.gethostname()] if len(socket.gethostname()) > 4 else []  # a shorter one is in any picture by chance
    for path in (path for path in work.rglob("*") if path.is_file()):
        content = path.read_bytes()
        told = [word for word in (*places, *host) if word.encode() in content]
        if told:
            sys.exit(f"{path.relative_to(work)} tells {told[0]}")


if __name__ == "__main__":
    main()
